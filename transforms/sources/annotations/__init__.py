"""Annotations of pictures as a source: a row for each picture, with its boxes, classes, masks and captions.

Begin with `source`; `coco`, `voc` and `yolo` read the files of each kind.
"""
