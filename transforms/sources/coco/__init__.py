"""COCO's annotations as a source: a row for each picture, with its boxes, classes, masks and captions.

Begin with `source`.
"""
