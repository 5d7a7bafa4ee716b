"""What comes in: CSV, Parquet, images, NumPy, TFRecord files and data in memory are listed, surveyed and read.

Begin with `inputs/contract/source`, which every source keeps. No Beam in this layer.
"""
