"""Write sets of pictures with the tools that people export them with, and what each tool reads of them: sets.json.

It runs in an environment of these tools, and not in that of the tests: `python write_sets.py FOLDER`. A set is in the
folder of its name; a picture is known by its bytes, and a box by its class and corners in pixels.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import datumaro as dm
import numpy as np
import supervision as sv
from datumaro.components.media import Image
from PIL import Image as Pillow

CLASSES = ["zebra", "hot dog", "cat", "never seen"]
COUNTS = {"train": 4, "val": 2, "test": 2}
ODD = ("näme 2", "b.c.d", "x  y", "2", "007", "z", "a'b", "1_GT")
FOLDERS = ("a/1", "b/1", "a/b c/3", "2", "a/4", "train/2", "test/2", "é/7")
"""Names of pictures: with blanks, dots and letters that are not ASCII, and in folders."""

Boxes = list[tuple[str, list[float]]]
Split = dict[str, tuple[str, Boxes]]


class Pictures:
    """Pictures of different sizes with zero, one or two boxes each, by split, name, path, and boxes in pixels."""

    def __init__(self, root: Path, names: tuple[str, ...] | None, suffix: str) -> None:
        self.name = root.name
        self.rows: list[tuple[str, str, Path, Boxes]] = []
        random = np.random.default_rng(1)
        splits = [split for split, count in COUNTS.items() for _ in range(count)]
        for n, split in enumerate(splits):
            width, height = 40 + 4 * n, 30 + 2 * n
            name = names[n] if names else f"{split}_{n}"
            path = root / f"{name}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            Pillow.fromarray(random.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(path)
            corners = [[3.0 + n, 5.0, 13.0 + 2 * n, 14.0 + n], [0.0, 0.0, width - 1.0, height - 1.0]]
            self.rows.append((split, name, path, [(CLASSES[(n + k) % 3], corners[k]) for k in range((n + 1) % 3)]))

    def of(self, split: str) -> list[tuple[str, Path, Boxes]]:
        return [(name, path, boxes) for own, name, path, boxes in self.rows if own == split]


def sha(path: str | Path) -> str:
    return sha_of(Path(path).read_bytes())


def sha_of(picture: bytes) -> str:
    return hashlib.sha256(picture).hexdigest()


def of_datumaro(pictures: Pictures, of: str) -> dm.Dataset:
    items = []
    for n, (split, name, path, boxes) in enumerate(pictures.rows):
        found: list[Any] = []
        if of == "boxes":
            for k, (label, (x, y, to_x, to_y)) in enumerate(boxes):
                number = 10 * n + k + 1
                found.append(dm.Bbox(x, y, to_x - x, to_y - y, label=CLASSES.index(label), id=number, group=number))
        if of == "classes":
            found.append(dm.Label(n % 2))  # all in each split, as Datumaro asks
        if of == "masks":
            mask = np.zeros(Pillow.open(path).size[::-1], dtype=bool)
            mask[2:9, 3:12] = True
            found.append(dm.Mask(mask, label=n % 3, id=n + 1, group=n + 1))
        # COCO's numbers of pictures are those of its attribute
        media = Image.from_file(str(path))
        items.append(dm.DatasetItem(name, subset=split, media=media, annotations=found, attributes={"id": n + 1}))
    return dm.Dataset.from_iterable(items, categories=CLASSES)


def read_by_datumaro(root: Path, form: str) -> dict[str, Any]:
    found = dm.Dataset.import_from(str(root), form)
    names = [one.name for one in found.categories()[dm.AnnotationType.label]]
    splits: dict[str, Split] = {}
    for item in found:
        boxes = [
            (names[one.label], [one.x, one.y, one.x + one.w, one.y + one.h])
            for one in item.annotations
            if isinstance(one, dm.Bbox)
        ]
        labels = [(names[one.label], []) for one in item.annotations if isinstance(one, dm.Label)]
        picture = sha_of(item.media.bytes) if form == "arrow" else sha(item.media.path)
        splits.setdefault(item.subset, {})[picture] = (item.id, boxes or labels)
    return {"splits": splits, "classes": names}


def by_datumaro(root: Path, pictures: Pictures, forms: Iterable[str], of: str = "boxes") -> Iterator[tuple[str, Any]]:
    for form in forms:
        name = f"datumaro {form} {of} {pictures.name}"
        of_datumaro(pictures, of).export(str(root / name), form, save_media=True)
        yield name, {**read_by_datumaro(root / name, READ_AS.get(form, form)), "datumaro": READ_AS.get(form, form)}


OTHERS = ("arrow", "cvat", "datumaro", "mot_seq_gt", "open_images")
READ_AS = {"mot_seq_gt": "mot_seq", "yolo_ultralytics": "yolo"}
"""The names under which Datumaro reads some of the formats that it writes."""


def detections(boxes: Boxes) -> sv.Detections:
    corners = np.array([corners for _, corners in boxes], dtype=np.float32).reshape(-1, 4)
    return sv.Detections(corners, class_id=np.array([CLASSES.index(label) for label, _ in boxes], dtype=int))


def read_by_supervision(found: sv.DetectionDataset) -> Split:
    return {
        sha(path): (
            path,
            [
                (found.classes[int(number)], list(map(float, corners)))
                for corners, number in zip(one.xyxy, one.class_id, strict=True)
            ],
        )
        for path, _, one in found
    }


def by_supervision(root: Path, pictures: Pictures) -> Iterator[tuple[str, Any]]:
    """The folders are those of its guide, which are Roboflow's: `train/images`, `train/labels`."""
    coco, yolo, voc, classes, alone = (
        root / f"supervision {name}" for name in ("coco", "yolo", "voc", "classes", "voc, one split")
    )
    found: dict[str, dict[str, Split]] = {one.name: {} for one in (coco, yolo, voc, classes, alone)}
    for split in COUNTS:
        rows = pictures.of(split)
        paths = [str(path) for _, path, _ in rows]
        ours = sv.DetectionDataset(CLASSES, paths, {str(path): detections(boxes) for _, path, boxes in rows})
        ours.as_coco(str(coco / split), str(coco / split / "_annotations.coco.json"))
        ours.as_yolo(str(yolo / split / "images"), str(yolo / split / "labels"), str(yolo / "data.yaml"))
        ours.as_pascal_voc(str(voc / split / "images"), str(voc / split / "labels"))
        found[coco.name][split] = read_by_supervision(
            sv.DetectionDataset.from_coco(str(coco / split), str(coco / split / "_annotations.coco.json"))
        )
        found[yolo.name][split] = read_by_supervision(
            sv.DetectionDataset.from_yolo(
                str(yolo / split / "images"), str(yolo / split / "labels"), str(yolo / "data.yaml")
            )
        )
        found[voc.name][split] = read_by_supervision(
            sv.DetectionDataset.from_pascal_voc(str(voc / split / "images"), str(voc / split / "labels"))
        )
        labels = {str(path): sv.Classifications(np.array([n % 3])) for n, (_, path, _) in enumerate(rows)}
        sv.ClassificationDataset(CLASSES, paths, labels).as_folder_structure(str(classes / split))
        of_folders = sv.ClassificationDataset.from_folder_structure(str(classes / split))
        found[classes.name][split] = {
            sha(path): (path, [(of_folders.classes[int(one.class_id[0])], [])]) for path, _, one in of_folders
        }
        if split == "train":
            ours.as_pascal_voc(str(alone / "images"), str(alone / "annotations"))
            found[alone.name][split] = read_by_supervision(
                sv.DetectionDataset.from_pascal_voc(str(alone / "images"), str(alone / "annotations"))
            )
    yield from ((name, {"splits": splits}) for name, splits in found.items())


def main(root: Path) -> None:
    warnings.simplefilter("ignore")
    logging.disable()
    plain = Pictures(root / "pictures/plain", None, ".jpg")
    odd = Pictures(root / "pictures/odd", ODD, ".png")
    folders = Pictures(root / "pictures/folders", FOLDERS, ".jpg")
    forms = ("coco", "coco_instances", "voc", "voc_detection", "yolo", "yolo_ultralytics")
    found = dict(by_datumaro(root, plain, forms))
    found |= by_datumaro(root, odd, forms)
    found |= by_datumaro(root, folders, forms[:4])  # Datumaro takes these folders for splits in YOLO's
    found |= by_datumaro(root, plain, ("imagenet_with_subset_dirs", "imagenet"), "classes")
    found |= by_supervision(root, plain)
    found |= by_datumaro(root, plain, OTHERS)
    found |= by_datumaro(root, odd, ("cvat",))
    found |= by_datumaro(root, plain, ("arrow", "coco_labels", "cvat", "datumaro"), "classes")
    (root / "sets.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
