"""Sets of pictures with annotations of a form that is not read are refused by name; the lines that are proposed run.

What is proposed with Datumaro and supervision runs in `tests/readers/exports`, where these tools are.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from .test_box_layouts import BOX, boxes, coco, picture, roboflow_coco, write

XML = "<annotations>\n<version>1.1</version>\n<image id='0' name='0.jpg'>{}</image></annotations>"
MARKS = {"dm_format_version": "1.0", "items": []}

FORMS: dict[str, tuple[str, str, str, str]] = {
    "CVAT for images": ("train.xml", XML.format("<box label='cat'/>"), "images/0.jpg", "coco_instances"),
    "CVAT's tags": ("train.xml", XML.format("<tag label='cat'/>"), "images/0.jpg", "imagenet_with_subset_dirs"),
    "CVAT for images, without <meta>": (
        "annotations.xml", "<annotations><image name='0.jpg' width='40'><box /></image></annotations>", "images/0.jpg",
        "the boxes of rectangles and polygons in Python: python -c",
    ),
    "CVAT for images, without <meta>, with tags": (
        "annotations.xml", "<annotations><image name='0.jpg' width='40'/></annotations>", "images/0.jpg",
        "export the set",
    ),
    "classes of whole pictures of COCO": (
        "annotations/labels_train.json", '{"annotations": [{"category_id": 1}]}', "images/train/0.jpg",
        '"coco_labels"',
    ),
    "LabelMe": (
        "Annotations/a/0.xml", "<annotation><object><polygon></polygon></object></annotation>", "Images/a/0.jpg",
        "as COCO",
    ),
    "LabelMe's JSON": ("labels/0.json", '{"shapes": [], "imagePath": "0.jpg"}', "images/0.jpg", "in Python: python -c"),
    "Datumaro": ("annotations/train.json", json.dumps(MARKS), "images/train/0.jpg", "datumaro"),
    "Datumaro's records": ("annotations/train.datum", "\0", "images/train/0.jpg", "export the set"),
    "Segment Anything": ("0.json", '{"annotations": [{"crop_box": []}]}', "0.jpg", "in Python: python -c"),
    "VGG Image Annotator": ("via.json", '{"regions": [{"shape_attributes": {}}]}', "0.jpg", "export the set"),
    "Label Studio": ("project.json", '[{"annotations": [{"completed_by": 1}]}]', "images/0.jpg", "export the set"),
    "Supervisely": ("ann/0.jpg.json", '{"objects": []}', "img/0.jpg", "export the set"),
    "CreateML": ("train/_annotations.createml.json", "[]", "train/0.jpg", "in Python: python -c"),
    "panoptic segments of COCO": ("annotations/panoptic_val.json", "{}", "val/0.jpg", "give instances_*.json too"),
    "KITTI": ("train/label_2/0.txt", "Car 0.00 0 -1.5 1 2 3 4 1 1 1 0 0 0 0\n", "train/image_2/0.jpg", "as COCO"),
    "MOT": ("gt/gt.txt", "1,-1,3.0,5.0,10.0,9.0,1,1,1.0\n", "img1/000001.jpg", "mot_seq"),
    "DOTA": ("train/labelTxt/0.txt", "1 1 2 1 2 2 1 2 plane 0\n", "train/images/0.jpg", "of eight numbers"),
    "ICDAR": ("train/gt_0.txt", "1,1,9,9,text\n", "train/images/0.jpg", "export the set"),
    "WIDER FACE": (
        "wider_face_split/wider_face_train_bbx_gt.txt", "0--a/0.jpg\n", "WIDER_train/images/0--a/0.jpg", "as COCO",
    ),
    "Open Images": (
        "annotations/train-annotations-bbox.csv", "ImageID,LabelName,XMin\n", "images/train/0.jpg", "open_images",
    ),
}  # fmt: skip
MASKS = {
    "Cityscapes": ("leftImg8bit/train/a/0.png", "gtFine/train/a/0_gtFine_labelIds.png"),
    "KITTI": ("training/image_2/0.png", "training/semantic/0.png"),
    "MVTec": ("train/good/0.png", "ground_truth/bad/0_mask.png"),
    "CamVid": ("train/0.png", "trainannot/0.png"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_set_of_another_form_is_refused_by_name_with_what_reads_it(form: str, shardmill: Shardmill) -> None:
    file, text, image, how = FORMS[form]
    write(f"my pets/{file}", text)
    picture(f"my pets/{image}")
    refused = shardmill("convert", "my pets", "-o", "out")
    assert refused.code == 2
    said = refused.err.replace("\n", " ")
    assert f"my pets/{file}: " in said
    assert form.partition(",")[0].removesuffix("'s tags").removesuffix("'s JSON").removesuffix("'s records") in said
    assert how in said
    alone = re.search(r"the pictures alone: (shardmill .+)", refused.err)
    assert alone is not None
    assert shardmill(*shlex.split(alone[1])[1:]).code == 0
    assert [row["image/width"] for row in open_dataset("out").to_arrow("train").to_pylist()] == [40]


@pytest.mark.parametrize("others", [["more/5.jpg"], []])
def test_the_command_that_reads_pictures_alone_says_where_it_leaves_splits_out(
    others: list[str], shardmill: Shardmill
) -> None:
    for one in ("train/1.jpg", "test/2.jpg", *others):
        picture(f"pets/{one}")
    shapes = [{"label": "cat", "shape_type": "rectangle", "points": [[1, 1], [3, 3]]}]
    write("pets/annotations/1.json", json.dumps({"shapes": shapes, "imagePath": "../train/1.jpg"}))
    refused = shardmill("convert", "pets", "-o", "out").err
    alone = re.search(r"the pictures alone(, without the splits of their folders)?: shardmill (.+)", refused)
    assert alone is not None
    assert shardmill(*shlex.split(alone[2])).code == 0
    assert (alone[1] is not None, len(open_dataset("out").splits)) == ((True, 1) if others else (False, 2))


@pytest.mark.parametrize("form", MASKS)
def test_masks_that_are_pictures_are_no_class(form: str, shardmill: Shardmill) -> None:
    for path in MASKS[form]:
        picture(f"city/{path}")
    refused = shardmill("convert", "city", "-o", "out")
    assert refused.code == 2
    assert f"masks of {form}" in refused.err
    assert "the pictures alone" not in refused.err  # masks would be among them
    write("city/metadata.csv", "file_name,mask_file_name\n" + ",".join(MASKS[form]) + "\n")
    done = shardmill("convert", "city", "-o", "out")
    assert done.code == 0, done.err
    found = open_dataset("out")
    (row,) = found.to_arrow(found.splits[0]).to_pylist()
    assert (row["image/filename"], row["mask/filename"]) == MASKS[form]


def follow(screen: str, shardmill: Shardmill) -> None:
    """Run the line of Python that is on a screen, and the command behind it."""
    proposed = re.search(r"in Python: python (-c .+) && shardmill (.+?); the pictures alone", screen)
    assert proposed is not None, screen
    subprocess.run([sys.executable, *shlex.split(proposed[1])], check=True)
    done = shardmill(*shlex.split(proposed[2]))
    assert done.code == 0, done.err


def test_boxes_of_create_ml_are_read_by_their_middles_and_splits_may_have_other_classes(shardmill: Shardmill) -> None:
    for split, label in (("train", "cat"), ("val", "dog")):
        picture(f"pets/{split}/é.jpg")
        coordinates = {"x": 14, "y": 10, "width": 20, "height": 10}
        rows = [{"image": "é.jpg", "annotations": [{"label": label, "coordinates": coordinates}]}]
        write(f"pets/{split}/_annotations.createml.json", json.dumps(rows))
    follow(shardmill("convert", "pets", "-o", "out").err, shardmill)
    assert boxes("out", "train") == [(BOX, ["cat"])]
    assert boxes("out", "val") == [(BOX, ["dog"])]


def test_boxes_of_segment_anything_are_read(shardmill: Shardmill) -> None:
    for n in range(2):
        picture(f"pets/{n}.jpg")
        of = {"image_id": n, "file_name": f"{n}.jpg", "width": 40, "height": 20}
        boxed = {"id": n, "bbox": [4, 5, 20, 10], "area": 200, "crop_box": [0, 0, 0, 0]}
        write(f"pets/{n}.json", json.dumps({"image": of, "annotations": [boxed]}))
    follow(shardmill("convert", "pets", "-o", "out").err, shardmill)
    assert boxes("out", "train") == [(BOX, ["object"])] * 2


@pytest.mark.parametrize(
    ("image", "file", "path"),
    [
        ("{}/1.jpg", "{}/1.json", "1.jpg"),
        ("{}/images/é 1.jpg", "{}/labels/é 1.json", "..\\images\\é 1.jpg"),
        ("{}/images/1.jpg", "{}/annotations/1.json", "1.jpg"),
        ("{}/images/1.jpg", "{}/images/1.json", "1.jpg"),
        ("images/{}/1.jpg", "labels/{}/1.json", "1.jpg"),
        ("images/{}/1.jpg", "Annotations/{}/1.json", "../../images/{}/1.jpg"),
        ("images/{}/1.jpg", "images/{}/1.json", "1.jpg"),
        ("{} set/1.jpg", "{} set/1.json", "1.jpg"),
    ],
)
def test_shapes_of_labelme_in_several_splits_are_read_as_boxes(
    image: str, file: str, path: str, shardmill: Shardmill
) -> None:
    for split, label in (("train", "cat"), ("val", "dog")):
        picture(f"pets/{image.format(split)}")
        shapes = [
            {"label": label, "points": [[24, 15], [4, 5]], "shape_type": "rectangle"},
            {"label": "a, b", "points": [[0, 0], [4, 0], [2, 10]], "shape_type": "polygon"},
            {"label": "point", "points": [[0, 0]], "shape_type": "point"},
        ]
        write(f"pets/{file.format(split)}", json.dumps({"shapes": shapes, "imagePath": path.format(split)}))
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    follow(refused.err, shardmill)
    for split, label in (("train", "cat"), ("val", "dog")):
        assert boxes("out", split) == [([0.1, 0.0, 0.25, 0.0, 0.6, 0.1, 0.75, 0.5], [label, "a, b"])]


def test_boxes_and_polygons_of_cvat_without_meta_are_read_in_their_splits(shardmill: Shardmill) -> None:
    shapes = {
        "train": "<box label='dog' xtl='4' ytl='5' xbr='24' ybr='15'/><tag label='old'/>",
        "val": "<polygon label='cat' points='4,5;24,5;24,15'/>"
        "<box label='a, b' xtl='10' ytl='8' xbr='20' ybr='12' rotation=\"90\"/>",
    }
    for (split, text), folder in zip(shapes.items(), ("images", "images/val"), strict=True):
        picture(f"pets/{folder}/{split}.jpg")
        write(
            f"pets/{split}.xml",
            f"<annotations>\n<image id='0' name='{split}.jpg' width='40' height='20'>{text}</image></annotations>",
        )
    refused = shardmill("convert", "pets", "-o", "out")
    assert refused.code == 2
    assert "pets/train.xml: annotations of CVAT for images" in refused.err
    assert "--set schema.boxes=clip" in refused.err
    follow(refused.err, shardmill)
    assert boxes("out", "train") == [(BOX, ["dog"])]
    ((found, names),) = boxes("out", "val")
    assert names == ["cat", "a, b"]
    assert found == pytest.approx([0.1, 0.325, 0.25, 0.25, 0.6, 0.425, 0.75, 0.75])


@pytest.mark.parametrize(
    ("place", "folder", "splits"),
    [
        ("releases/latest/annotations", "/", ("train", "val", "test")),
        ("annotations", "/a b", ("train", "test")),
        ("releases/latest/annotations", "", ()),
    ],
)
def test_boxes_of_darwin_are_read_in_the_splits_of_its_lists(
    place: str, folder: str, splits: tuple[str, ...], shardmill: Shardmill
) -> None:
    for split in splits or ("train",):
        picture(f"cars/images/{folder.strip('/')}/{split}.png")
        item = {"name": f"{split}.png", "path": folder, "slots": [{"type": "image", "width": 40, "height": 20}]}
        objects = [
            {"name": "car", "bounding_box": {"h": 10.0, "w": 20.0, "x": 4.0, "y": 5.0}},
            {"name": "night", "tag": {}},
        ]
        document = {"version": "2.0", "dataset": {"name": "c"}, "item": item, "annotations": objects}
        write(f"cars/{place}/{split}.json", json.dumps(document))
        if splits:
            write(f"cars/releases/latest/lists/random_{split}.txt", f"{split}.json\n")
    refused = shardmill("convert", "cars", "-o", "out")
    assert refused.code == 2
    assert "annotations of V7 Darwin, which are not read; the boxes of" in refused.err
    follow(refused.err, shardmill)
    for split in splits or ("train",):
        assert boxes("out", split) == [(BOX, ["car"])]


def test_rotated_boxes_of_cvat_become_polygons_that_end_at_the_edge(shardmill: Shardmill) -> None:
    picture("pets/images/0.jpg")
    write("pets/train.xml", XML.format("<box label='cat' rotation=\"20\"/>"))
    refused = shardmill("convert", "pets", "-o", "out")
    assert "datumaro.Polygon(sum(map(list, one.as_polygon()), []), label=one.label)" in refused.err
    assert "shardmill convert pets-coco -o out --set schema.boxes=clip" in refused.err
    assert "all but points, lines and cuboids with Datumaro" in refused.err
    picture("pets-coco/images/0.jpg")  # what Datumaro writes of it
    coco("pets-coco/annotations/instances_default.json", ["0.jpg"])
    path = Path("pets-coco/annotations/instances_default.json")
    path.write_text(path.read_text().replace("[4, 5, 20, 10]", "[-4, 5, 20, 10]"))
    command = re.search(r"shardmill (convert pets-coco .+?);", refused.err)
    assert command is not None
    assert shardmill(*shlex.split(command[1])).code == 0


def test_annotations_that_are_read_come_before_those_that_are_not(shardmill: Shardmill) -> None:
    roboflow_coco("pets")
    write("pets/train/0.json", '{"shapes": [], "imagePath": "0.jpg"}')
    assert shardmill("convert", "pets", "-o", "out").code == 0
    assert "image/object/bbox/xmin" in open_dataset("out").to_arrow("train").column_names


def test_documents_beside_pictures_that_are_no_annotations_refuse_nothing(shardmill: Shardmill) -> None:
    for split in ("train", "test"):
        picture(f"pets/{split}/cat/0.jpg")
    write("pets/notes.json", '{"objects": 3}')
    write("pets/about.xml", "<annotations/>")
    write("pets/train/gtx.txt", "0")
    done = shardmill("convert", "pets", "-o", "out")
    assert done.code == 0, done.err


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_arrays_of_mnist_are_read_by_the_lines_of_python(suffix: str, tmp_path: Path, shardmill: Shardmill) -> None:
    pixels = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    for name, first in (("train", 0), ("t10k", 100)):
        for file, data in (
            (f"{name}-images-idx3-ubyte{suffix}", b"\0\0\x08\x03" + bytes([0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4])
             + (pixels + first).tobytes()),
            (f"{name}-labels-idx1-ubyte{suffix}", b"\0\0\x08\x01\0\0\0\2" + bytes([first, 1])),
        ):  # fmt: skip
            Path("mnist").mkdir(exist_ok=True)
            Path("mnist", file).write_bytes(gzip.compress(data) if suffix else data)
    write("mnist/labels.txt", "a\nb\n")
    refused = shardmill("convert", "mnist", "-o", "out")
    assert refused.code == 2
    lines = refused.err.replace("\n", " ").split("in Python: ")[1].strip()
    exec(lines, {})
    found = open_dataset("out")
    for split, first in (("train", 0), ("test", 100)):
        rows = found.to_arrow(split).to_pylist()
        assert [row["label"] for row in rows] == [first, 1]
        assert [np.reshape(row["image"], (3, 4)).tolist() for row in rows] == (pixels + first).tolist()


def test_a_set_of_coco_is_not_taken_for_another_by_its_name(shardmill: Shardmill) -> None:
    picture("gt/images/0.jpg")
    coco("gt/annotations/instances_default.json", ["0.jpg"])
    assert shardmill("convert", "gt", "-o", "out").code == 0


def test_an_export_of_datumaro_to_arrow_is_refused_and_read_as_it_is_where_it_is_meant(shardmill: Shardmill) -> None:
    schema = pa.schema([("id", pa.string())], {"signature": "signature:datumaro_arrow"})
    with pa.OSFile("datum-0.arrow", "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        writer.write_table(pa.table({"id": ["1"]}, schema))
    refused = shardmill("convert", "datum-0.arrow", "-o", "out")
    assert refused.code == 2
    assert "datum-0.arrow: is an export of Datumaro to Arrow" in refused.err
    assert "with Datumaro: python -c 'import datumaro; " in refused.err
    assert shardmill("convert", "datum-0.arrow", "-o", "out", "--set", "input.detect=none").code == 0
