"""What comes in, listed, surveyed and read: tables, JSON lines, text, images with annotations, archives, arrays.

Begin with `inputs/contract/source`, which every source keeps. No Beam in this layer.
"""
