from __future__ import annotations

import io
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, SchemaError, SourceError, TooManyRejects, UsageError
from shardmill.transforms.sources.annotations import coco

from ...command_line import Shardmill
from ...label_numbers import in_numbers

WIDTH, HEIGHT = 20, 10


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def instances(count: int = 3, path: str = "instances.json", **more: Any) -> str:
    """Write pictures, of which number n has n objects, and COCO's file of them."""
    Path("pictures").mkdir(exist_ok=True)
    images, annotations = [], []
    for number in range(count):
        Image.new("RGB", (WIDTH, HEIGHT), (number, 0, 0)).save(f"pictures/{number}.png")
        images.append({"id": 500 + number, "file_name": f"{number}.png", "width": WIDTH, "height": HEIGHT})
        for index in range(number):
            one = {"image_id": 500 + number, "bbox": [index, 1, 4, 5], "category_id": 90 - index, "iscrowd": 0}
            annotations.append(one | {"area": 20.0, "segmentation": [[index, 1, index + 4, 1, index + 4, 6, index, 6]]})
    categories = [{"id": 90, "name": "toothbrush"}, {"id": 89, "name": "hair drier"}]
    document = {"images": images, "annotations": annotations, "categories": categories} | more
    Path(path).write_text(json.dumps(document))
    return path


def captions(count: int = 3) -> str:
    images = [{"id": 500 + number, "file_name": f"{number}.png"} for number in range(count)]
    lines = [{"image_id": 500 + number, "caption": f"{word} {number}"} for number in range(count) for word in "ab"]
    Path("words.json").write_text(json.dumps({"images": images, "annotations": lines}))
    return "words.json"


def records(split: str = "train", path: str = "out") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = in_numbers(open_dataset(path).to_arrow(split)).to_pylist()
    return rows


def run(*files: str, masks: bool = False, **more: Any) -> Any:
    return convert("pictures", output="out", input__annotations={"coco": list(files), "masks": masks}, **more)


def test_pictures_have_the_boxes_classes_masks_and_captions_of_all_files() -> None:
    run(instances(), captions(), masks=True)
    none, _, two = records()
    assert (two["image/source_id"], two["image/caption"]) == ("502", ["a 2", "b 2"])
    assert two["image/object/bbox/xmin"] == pytest.approx([0, 0.05])
    assert two["image/object/bbox/ymax"] == pytest.approx([0.6, 0.6])
    assert two["image/object/class/label"] == [90, 89], "the numbers of COCO as they are"
    assert two["image/object/class/text"] == ["toothbrush", "hair drier"]
    assert two["image/object/is_crowd"] == [0, 0]
    assert two["image/object/area"] == [20, 20]
    masks = [np.asarray(Image.open(io.BytesIO(data))) for data in two["image/object/mask"]]
    assert [(mask.shape, int(mask.sum())) for mask in masks] == [((HEIGHT, WIDTH), 20)] * 2
    assert {key: value for key, value in none.items() if key.startswith("image/object")} == dict.fromkeys(
        key for key in none if key.startswith("image/object")
    ), "a picture without objects has none of the keys"
    assert none["image/caption"] == ["a 0", "b 0"]
    assert verify_dataset("out").ok


def test_segmentations_are_counted_and_become_masks_by_the_setting_on_the_screen(shardmill: Shardmill) -> None:
    command = ["convert", "pictures", "-o", "out", "--set", f"input.annotations.coco=[{instances()}]"]
    screen = shardmill(*command)
    assert screen.code == 0, screen.err
    assert "image/object/mask" not in records()[0]
    assert records()[2]["image/object/class/label"] == [90, 89]
    (line,) = [line for line in screen.out.splitlines() if "segmentations of 3 objects are not read" in line]
    setting = line.rpartition("--set ")[2]
    assert shardmill(*command, "--set", setting, "--overwrite").code == 0
    assert len(records()[2]["image/object/mask"]) == 2


def test_masks_without_the_extra_that_draws_them_stop_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    install = r"^masks take pycocotools, which is not installed; .*uv tool install '\.\[aws,coco,gcp,images\]'"
    listed = instances()
    Path("broken.json").write_text("{")
    with pytest.raises(UsageError, match=install):
        run("broken.json", masks=True)
    run(listed)
    objects = {"bbox": [[1, 1, 4, 4]], "category": [0], "segmentation": ["[[1, 1, 5, 1, 5, 5]]"]}
    Path("pictures/metadata.jsonl").write_text(json.dumps({"file_name": "0.png", "objects": objects}) + "\n")
    with pytest.raises(UsageError, match=install):
        convert("pictures", output="other")


def test_a_picture_that_is_missing_is_a_reject_and_one_that_is_not_listed_is_counted(shardmill: Shardmill) -> None:
    instances(4)
    Path("pictures/1.png").rename("pictures/other.png")
    option = "input.annotations.coco=[instances.json]"
    screen = shardmill("convert", "pictures", "-o", "out", "--set", option, "--max-rejects", "1")
    assert screen.code == 0, screen.err
    assert "1 picture is named by no row or annotation, and is left out, such as pictures/other.png" in screen.out
    assert 'instances.json picture 1.png: column "image": MISSING_FILE: "1.png" is not below pictures: ' in screen.out
    assert [row["image/source_id"] for row in records()] == ["500", "502", "503"]


def test_a_box_over_the_edge_is_a_reject_of_its_picture_or_ends_there() -> None:
    annotations = [{"image_id": 500, "bbox": [18, 1, 4, 4], "category_id": 90}]
    source = instances(1, annotations=annotations)
    with pytest.raises(
        TooManyRejects, match=r"instances\.json picture 0\.png: .*box 1 \[.*goes over its edge.*--set schema.boxes=clip"
    ):
        run(source)
    run(source, schema={"boxes": "clip"})
    assert records()[0]["image/object/bbox/xmax"] == [1]


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [([[1, 2]], "three or more corners"), ({"size": [9, 9], "counts": [81]}, "and its picture of")],
)
def test_a_segmentation_that_is_none_is_a_reject_of_its_picture(segmentation: Any, message: str) -> None:
    one = {"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 90, "segmentation": segmentation}
    source = instances(2, annotations=[one])
    with pytest.raises(
        TooManyRejects, match=f"the segmentation of object 1 .*{message}.*input.annotations.masks=false"
    ):
        run(source, masks=True)
    run(source, masks=True, max_rejects=1)
    assert [row["image/source_id"] for row in records()] == ["501"]


def test_annotations_of_no_picture_are_counted_and_fields_that_some_objects_lack_are_named(
    shardmill: Shardmill,
) -> None:
    lost = {"image_id": 7, "bbox": [1, 1, 4, 4], "category_id": 90}
    some = [{"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 90, "area": area} for area in (16, None)]
    instances(1, annotations=[lost, *some, *[{"image_id": 500, "caption": "x"}] * 8])
    screen = shardmill("convert", "pictures", "-o", "out", "--set", "input.annotations.coco=[instances.json]")
    assert "annotations left out, as their picture is not in the list of images: 1" in screen.out
    assert '"area" is left out: not all objects have it, but 1 of 2' in screen.out
    assert records()[0]["image/object/class/label"] == [90, 90]


def test_an_append_adds_the_pictures_of_another_file_to_another_split() -> None:
    run(instances(2))
    Path("pictures").rename("first")
    append("pictures" if instances(3, "more.json") else "", output="out", output__split="val",
           input__annotations={"coco": ["more.json"]})  # fmt: skip
    assert [row["image/source_id"] for row in records("val")] == ["500", "501", "502"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "is no JSON"),
        ("[]", 'is no file of COCO\'s annotations: it needs lists "images" and "annotations", and has list'),
        ('{"images": 5, "annotations": []}', "and has images, annotations"),
        ('{"images": [{}], "annotations": []}', r'images\[0\] has no "id" and "file_name"'),
        ('{"images": [{"id": 1, "file_name": "x"}], "annotations": [3]}', r"annotations\[0\] is no object: 3"),
        ('{"images": [], "annotations": []}', "names no picture"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_file_that_is_none_of_cocos_is_refused_by_its_name(document: str, message: str) -> None:
    instances()
    Path("bad.json").write_text(document)
    with pytest.raises(SourceError, match=f"^bad.json: .*{message}"):
        run("bad.json")


def test_more_categories_than_there_are_classes_are_refused_with_what_leaves_them_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coco, "MOST_CLASSES", 2)
    more = [{"id": number, "name": f"c{number}"} for number in range(80, 100)]
    with pytest.raises(SourceError, match="has more than 2 categories, which are no classes; leave out") as refused:
        run(instances(categories=more))
    command = str(refused.value).partition("without objects: ")[2]
    assert command.startswith("jq '")
    assert command.endswith("' instances.json > smaller.json")
    if shutil.which("jq"):
        subprocess.run(command, shell=True, check=True)
        assert [one["id"] for one in json.loads(Path("smaller.json").read_text())["categories"]] == [89, 90]


def test_files_of_two_sets_of_pictures_are_refused() -> None:
    instances()
    Path("other.json").write_text(json.dumps({"images": [{"id": 500, "file_name": "x.png"}], "annotations": []}))
    with pytest.raises(SourceError, match=r"the picture 500 is x\.png, and 0\.png before"):
        run("instances.json", "other.json")


@pytest.mark.parametrize("value", [1e400, 10**400, "1", None, True, [1]])
def test_odd_numbers_are_rejects_and_never_errors(value: Any) -> None:
    one = {"image_id": 500, "bbox": [value, 1, 4, 4], "category_id": value, "area": value, "iscrowd": value}
    source = instances(2, annotations=[one])
    run(source, max_rejects=1)
    assert [row["image/source_id"] for row in records()] == ["501"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"coco": []}, ConfigError, "annotations"),
        ({"cvat": "x"}, ConfigError, "annotations"),
        ({"coco": "instances.json", "classes": ["a"]}, ConfigError, "classes go with voc and yolo"),
        ({"coco": ["gone.json"]}, UsageError, "gone.json: no such file"),
    ],
)
def test_annotations_that_are_not_there_are_refused(given: Any, error: type[Exception], message: str) -> None:
    instances()
    with pytest.raises(error, match=message):
        convert("pictures", output="out", input__format="images", input__annotations=given)


def test_annotations_go_with_one_folder_and_without_keys_of_folders_alone() -> None:
    instances()
    with pytest.raises(ConfigError, match="annotations are of the pictures of one local folder"):
        convert(["pictures", "pictures/0.png"], output="out", input__annotations={"coco": ["instances.json"]})
    with pytest.raises(ConfigError, match=r"input\.layout is for folders alone; leave the key out$"):
        run("instances.json", input__layout="flat")


def people(*keypoints: list[float] | None, path: str = "people.json") -> str:
    """Write one picture with an object for each list of keypoints."""
    Path("pictures").mkdir(exist_ok=True)
    Image.new("RGB", (WIDTH, HEIGHT)).save("pictures/0.png")
    annotations = [
        {"id": number, "image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 1}
        | ({} if points is None else {"keypoints": points, "num_keypoints": sum(point > 0 for point in points[2::3])})
        for number, points in enumerate(keypoints, 1)
    ]
    categories = [{"id": 1, "name": "person", "keypoints": ["nose", "left_eye"]}]
    images = [{"id": 500, "file_name": "0.png"}]
    Path(path).write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def points_of(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[f"image/object/keypoint/{key}"] for key in ("x", "y", "visibility", "num", "text")}


def test_keypoints_are_several_for_each_object_and_zeros_where_one_has_none() -> None:
    run(people([5, 2, 2, 10, 4, 0], None))
    assert points_of(records()[0]) == {
        "x": pytest.approx([0.25, 0.5, 0, 0]), "y": pytest.approx([0.2, 0.4, 0, 0]), "visibility": [2, 0, 0, 0],
        "num": [1, 0], "text": ["nose", "left_eye"] * 2,
    }  # fmt: skip


def test_an_object_that_two_files_speak_of_is_one() -> None:
    run(people(None, None), people(None, [5, 2, 2, 10, 4, 1], path="points.json"))
    (row,) = records()
    assert row["image/object/class/label"] == [1, 1]
    assert points_of(row)["num"] == [0, 2]
    assert points_of(row)["x"] == pytest.approx([0, 0, 0.25, 0.5])


@pytest.mark.parametrize("points", [[5, 2], [5, 2, 2, 1], [5, 2, None], ["x", 2, 2], [5, 2, 1e400]])
def test_keypoints_that_are_none_are_a_reject_of_their_picture(points: list[Any]) -> None:
    document = json.loads(Path(people([5, 2, 2], [5, 2, 2])).read_text())
    document["annotations"][1]["keypoints"] = points
    Path("people.json").write_text(json.dumps(document))
    with pytest.raises(
        TooManyRejects,
        match=r"people\.json picture 0\.png.*the keypoints of object 2 \(id 2\) are not x, y and visibility of each",
    ):
        run("people.json")


@pytest.mark.parametrize("odd", [[1], {"a": 1}, None, True, 1.5, ""])
def test_ids_of_any_kind_are_never_errors(odd: Any) -> None:
    one = {"id": odd, "image_id": odd, "bbox": [1, 1, 4, 4], "category_id": odd, "keypoints": odd, "num_keypoints": odd}
    many = [{"image_id": 500, "caption": "x"}] * 18
    source = instances(2, annotations=[one, one, *many], categories=[{"id": odd, "name": odd, "keypoints": odd}])
    run(source)
    assert [row["image/source_id"] for row in records()] == ["500", "501"]


def test_boxes_of_a_picture_of_another_size_are_rejects() -> None:
    document = json.loads(Path(instances(3)).read_text())
    document["images"][1] |= {"width": HEIGHT, "height": WIDTH}
    document["images"][2] |= {"width": 2 * WIDTH}
    Path("instances.json").write_text(json.dumps(document))
    with pytest.raises(TooManyRejects, match=r"of a picture of 10 x 20 pixels, and this one is of 20 x 10 \(perhaps"):
        run("instances.json")
    run("instances.json", max_rejects=2)
    assert [row["image/source_id"] for row in records()] == ["500"]


def test_classes_that_are_not_listed_and_keys_that_are_not_read_are_counted(shardmill: Shardmill) -> None:
    one = {"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 7, "score": 0.5}
    instances(1, annotations=[one, one | {"category_id": 90}])
    screen = shardmill("convert", "pictures", "-o", "out", "--set", "input.annotations.coco=[instances.json]")
    assert "annotations whose class is not in the list of categories: 1" in screen.out
    assert 'annotations with "score", which is not read: 2' in screen.out


def test_one_file_needs_no_list_and_a_class_may_be_written_as_a_whole_float() -> None:
    one = {"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 90.0}
    instances(1, annotations=[one])
    convert("pictures", output="out", input__annotations={"coco": "instances.json"})
    assert records()[0]["image/object/class/text"] == ["toothbrush"]


def test_classes_have_names_in_the_manifest_where_ids_are_0_to_n_minus_1() -> None:
    categories = [{"id": 1, "name": "dog"}, {"id": 0, "name": "cat"}]
    one = {"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 1}
    run(instances(1, annotations=[one], categories=categories))
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog")}
    assert records()[0]["image/object/class/label"] == [1]
    assert verify_dataset("out").ok


@pytest.mark.parametrize(
    ("categories", "why"),
    [
        ([{"id": 90, "name": "toothbrush"}], "class 1 has no name, so that image/object/class/label has plain numbers"),
        ([{"id": 1, "name": "cat"}], "the numbers of classes are not 0 to 0, but 1 to 1, so that"),
        ([{"id": 0, "name": "cat"}, {"id": 1, "name": "cat"}], '2 classes are called "cat", so that'),
        ([{"id": 0, "name": "cat"}, {"id": 1}], "class 1 has no name, so that"),
        ([], ""),
    ],
)
def test_classes_are_plain_numbers_where_ids_have_gaps_or_names_are_not_one_each(
    categories: Any, why: str, shardmill: Shardmill
) -> None:
    one = {"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": 1}
    instances(1, annotations=[one], categories=categories)
    screen = shardmill("convert", "pictures", "-o", "out", "--set", "input.annotations.coco=instances.json")
    assert why in screen.out
    assert ("plain numbers" in screen.out) == bool(why)
    in_text = "TFDS and the manifest; the names are in image/object/class/text" in screen.out
    assert in_text == (bool(why) and "image/object/class/text" in records()[0])
    assert open_dataset("out").labels == {}
    assert records()[0]["image/object/class/label"] == [1]


def of_classes(path: str, names: dict[int, str], *ids: int) -> str:
    annotations = [{"image_id": 500, "bbox": [1, 1, 4, 4], "category_id": number} for number in ids]
    return instances(
        1, path, annotations=annotations, categories=[{"id": n, "name": name} for n, name in names.items()]
    )


def add(*files: str, **more: Any) -> Any:
    Image.new("RGB", (WIDTH, HEIGHT), (9, 9, 9)).save("pictures/0.png")
    return append("pictures", output="out", input__annotations={"coco": list(files)}, **more)


def test_an_append_keeps_the_numbers_of_classes_and_adds_new_ones_at_the_end() -> None:
    run(of_classes("one.json", {0: "cat", 1: "dog"}, 0, 1))
    add(of_classes("two.json", {1: "dog", 2: "owl"}, 2, 1))
    assert open_dataset("out").labels == {"image/object/class/label": ("cat", "dog", "owl")}
    assert [row["image/object/class/label"] for row in records()] == [[0, 1], [2, 1]]
    assert verify_dataset("out").ok


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({0: "dog", 1: "cat"}, 'class 0 is "dog" in these files, and "cat" in .*out, generation 1; there it is 1'),
        ({1: "cat"}, 'class 1 is "cat" in these files, and "dog" in .*out'),
        ({7: "owl"}, 'class 7 is "owl" in these files, and no class in .*out, generation 1, whose next is 2'),
        ({2: "cat"}, 'class 2 is "cat" in these files, and no class in .*out, generation 1; there it is 0'),
    ],
)
def test_an_append_of_other_numbers_of_classes_is_refused(names: dict[int, str], message: str) -> None:
    run(of_classes("one.json", {0: "cat", 1: "dog"}, 0, 1))
    with pytest.raises(SchemaError, match=message):
        add(of_classes("two.json", names, next(iter(names))))


def test_a_number_that_is_no_class_of_the_dataset_is_a_reject_of_its_picture() -> None:
    run(of_classes("one.json", {0: "cat", 1: "dog"}, 0, 1))
    with pytest.raises(
        TooManyRejects, match=r"object 2 is of class 2, and the classes of the dataset are 0 to 1 \(cat"
    ):
        add(of_classes("two.json", {0: "cat"}, 1, 2))


def test_an_append_to_a_dataset_of_plain_numbers_keeps_them_plain() -> None:
    run(of_classes("one.json", {0: "cat", 5: "dog"}, 0, 5))
    add(of_classes("two.json", {0: "dog"}, 0))
    assert open_dataset("out").labels == {}
    assert [row["image/object/class/label"] for row in records()] == [[0, 5], [0]]


def test_a_number_with_two_names_in_two_files_is_refused() -> None:
    with pytest.raises(SourceError, match=r'two.json: the category 0 is "dog", and "cat" before'):
        run(of_classes("one.json", {0: "cat"}, 0), of_classes("two.json", {0: "dog"}, 0))


def test_rejects_name_the_file_and_the_picture_and_the_objects_id() -> None:
    annotations = [
        {"id": 1768, "image_id": 501, "bbox": [1, 1, 40, 5], "category_id": 90},
        {"id": "x", "image_id": 500, "bbox": [1, 1, 0, 5], "category_id": 90},
    ]
    run(instances(3, annotations=annotations), max_rejects=2)
    lines = [json.loads(line) for line in Path("out/rejects/00000001.jsonl").read_text().splitlines()]
    assert [(line["source"], line["picture"], "row" in line) for line in lines] == [
        ("instances.json", "0.png", False),
        ("instances.json", "1.png", False),
    ]
    assert "box 1 (id x) [1, 1, 0, 5]" in lines[0]["errors"][0]["message"]
    assert "box 1 (id 1768) [1, 1, 40, 5]" in lines[1]["errors"][0]["message"]
    assert verify_dataset("out").ok
    assert not any("id" in key.split("/")[2:] for key in records()[0])


def test_workers_read_pictures_and_boxes_without_pandas() -> None:
    found = {"paths": ["pictures"], "annotations": {"coco": [instances()]}}
    config = load_config({"input": found, "output": {"path": "out"}})
    prepared = prepare(conversion_of(config), WorkerProcesses(1))
    task = prepared.source, prepared.plan.tasks[0], prepared.plan.survey.frozen
    Path("task.pickle").write_bytes(pickle.dumps(task))
    code = (
        "import pickle, sys; source, *task = pickle.load(open('task.pickle', 'rb')); "
        "print(sum(rows.batch.num_rows for rows in source.read(*task)), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("3 False\n", "")


def test_ids_with_gaps_are_dense_by_the_setting_on_the_screen_and_in_appends(shardmill: Shardmill) -> None:
    command = ["convert", "pictures", "-o", "out", "--set", "input.annotations.coco=one.json"]
    of_classes("one.json", {90: "toothbrush", 1: "person", 7: "train"}, 90, 1)
    screen = shardmill(*command)
    (line,) = [line for line in screen.out.splitlines() if "plain numbers" in line]
    assert "; to number them 0 to 2: --set " in line
    assert shardmill(*command, "--set", line.rpartition("--set ")[2], "--overwrite").code == 0
    assert open_dataset("out").labels == {"image/object/class/label": ("person", "train", "toothbrush")}
    assert records()[0]["image/object/class/label"] == [2, 0]
    assert records()[0]["image/object/class/text"] == ["toothbrush", "person"]
    add(of_classes("two.json", {5: "bus", 2: "toothbrush", 3: "person"}, 5, 2, 3))
    assert open_dataset("out").labels == {"image/object/class/label": ("person", "train", "toothbrush", "bus")}
    assert records()[1]["image/object/class/label"] == [3, 2, 0]
    assert verify_dataset("out").ok


def test_dense_classes_have_a_name_each_and_a_dataset_that_has_names() -> None:
    def of(file: str) -> dict[str, Any]:
        return {"coco": [file], "classes": "dense"}

    of_classes("alike.json", {1: "cat", 2: "cat"}, 1)
    with pytest.raises(SchemaError, match='classes: dense: 2 categories are called "cat"; give each a name of its own'):
        convert("pictures", output="out", input__annotations=of("alike.json"))
    run(of_classes("plain.json", {1: "cat", 5: "dog"}, 1))
    of_classes("more.json", {1: "cat", 5: "dog"}, 1, 3)
    with pytest.raises(SchemaError, match=r"classes: dense gives classes names, and .* has plain numbers; leave the"):
        append("pictures", output="out", input__annotations=of("more.json"), force=True)
    with pytest.raises(TooManyRejects, match="object 2 has no class"):
        convert("pictures", output="other", input__annotations=of("more.json"))


def test_classes_are_dense_too_where_coco_is_found_by_its_place(shardmill: Shardmill) -> None:
    of_classes("pictures/instances_train.json", {90: "toothbrush", 1: "person"}, 90, 1)
    done = shardmill("convert", "pictures", "-o", "out", "--set", "input.annotations.classes=dense")
    assert done.code == 0, done.err
    assert open_dataset("out").labels == {"image/object/class/label": ("person", "toothbrush")}
    of_classes("pictures/instances_train.json", {7: "train", 1: "person"}, 1, 7)
    Image.new("RGB", (WIDTH, HEIGHT), (9, 9, 9)).save("pictures/0.png")
    done = shardmill("append", "pictures", "-o", "out", "--split", "train", "--changed", "append")
    assert done.code == 0, done.err
    assert open_dataset("out").labels == {"image/object/class/label": ("person", "toothbrush", "train")}


def test_an_append_reads_masks_as_its_dataset_has_them_where_coco_is_found_by_its_place(shardmill: Shardmill) -> None:
    Path(instances(2)).rename("pictures/instances_train.json")
    asked = ["--set", "input.annotations.masks=true"]
    assert shardmill("convert", "pictures", "-o", "out", *asked).code == 0
    instances(3)
    Path("instances.json").rename("pictures/instances_train.json")
    done = shardmill("append", "pictures", "-o", "out", "--split", "train", "--changed", "append")
    assert done.code == 0, done.err
    assert len(records()[-1]["image/object/mask"]) == 2
