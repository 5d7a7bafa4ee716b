"""Refuse pictures whose annotations have a form that is not read, and give the command that converts them.

    CVAT for images    train.xml                         images/train/7.jpg
    LabelMe            Annotations/7.xml                 Images/7.jpg
    Datumaro           annotations/train.json            images/train/7.jpg
    KITTI              train/label_2/7.txt               train/image_2/7.jpg
    MOT                gt/gt.txt                         img1/7.jpg
    WIDER FACE         wider_face_split/..._bbx_gt.txt   WIDER_train/images/0--cat/7.jpg
    Cityscapes         gtFine/train/7_labelIds.png       leftImg8bit/train/7.png
    MNIST              train-labels-idx1-ubyte.gz        train-images-idx3-ubyte.gz

The folders that are looked at are the root, those of splits in it, and the few whose names say what they hold.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from ...errors import InputError
from ...format.wording.hints import Foreign, Set
from ...inputs.contract.selection import Call, shown_path, typed_path
from ...inputs.files.file_names import is_other_file, why_skipped
from ...inputs.files.listing import beginning_of, unpacked
from ..evidence.names import split_in_words
from ..pictures.box_layouts import files_below, files_in, folders_in, folders_of_splits, root_of
from ..splits.seen import Seen
from .files import HEAD_BYTES, MEANT, MOST_HEADS


def refuse_datumaro(seen: Seen) -> None:
    """Raises `InputError` where files of Arrow are Datumaro's, whose annotations and classes have a form of its own."""
    if seen.form == "arrow" and seen.files and _OF_DATUMARO in beginning_of(seen.files[0], _SET_HEAD):
        what = "is an export of Datumaro to Arrow, whose annotations are in bytes of its own"
        made, line = _by_datumaro(os.path.dirname(seen.files[0]), "arrow", "coco")
        how = f"{Foreign('python', '-c', line)} && {seen.call.reading([made])}"
        raise InputError(f"{shown_path(seen.files[0])}: {what}; all but {_BUT} with Datumaro: {how}{MEANT}")


_OF_DATUMARO: Final = b"signature:datumaro_arrow"


# Sets of pictures of other forms: a wrong guess would read pictures without their boxes, or masks as classes.


_SET_HEAD: Final = 1 << 18
_TABLE: Final = "read both from a table, metadata.csv with the columns file_name and mask_file_name"
_EXPORT: Final = "export the set as COCO, Pascal VOC or YOLO"
_BUT: Final = "points, lines and cuboids"
_CREATE_ML: Final = "CreateML"
_SEGMENTS: Final = "Segment Anything"
_LABELME: Final = "labelme"
_CVAT: Final = "CVAT without <meta>"
_DARWIN: Final = "Darwin"
_DATUMARO: Final = "Datumaro without a version"
_MOST_FOLDERS: Final = 64


@dataclass(frozen=True, slots=True)
class _Form:
    """What annotations are called, the folders of their files, the names of these, and how their first bytes look.

    Datumaro reads them as `importer`. Where heads have `classes` and no `boxes`, pictures have a class each. Some are
    looked for `in_splits` alone, others in `each` folder.
    """

    called: str
    folders: tuple[str, ...]
    names: str
    head: bytes = b""
    importer: str = ""
    advice: str = _EXPORT
    boxes: bytes = b""
    classes: bytes = b"(?!)"
    exact: bool = True
    in_splits: bool = False
    each: bool = False


_LABELS: Final = rb'"categories"\s*:\s*\{\s*"label"\s*:\s*\{\s*"labels"'
_SHAPES: Final = rb'"shapes"[\s\S]*"imagePath"'
_FORMS: Final = (
    _Form("annotations of CVAT for images", ("", "annotations"), r".+\.xml", rb"<annotations>\s*<(?:version|meta)\b",
          "cvat", boxes=rb"<(?:box|poly|points|mask|ellipse|cuboid)", classes=rb"<tag "),
    _Form("annotations of CVAT for images", ("", "annotations"), r".+\.xml",
          rb"<annotations>\s*<image\s[^>]*\bwidth=[\s\S]*<(?:box|polygon)\s", _CVAT),
    _Form("annotations of CVAT for images", ("", "annotations"), r".+\.xml", rb"<annotations>\s*<image\s[^>]*\bwidth="),
    _Form("annotations of LabelMe", ("Annotations",), r".+\.xml", rb"<annotation>[\s\S]*<(?:nrows|polygon)>"),
    _Form("annotations of LabelMe", ("Annotations", "annotations", "labels"), r".+\.json", _SHAPES, _LABELME),
    _Form("annotations of LabelMe", ("", "images"), r".+\.json", _SHAPES, _LABELME, in_splits=True),
    _Form("annotations of Datumaro", ("annotations",), r".+\.json", rb'"dm_format_version"', "datumaro",
          boxes=rb'"type":"(?:bbox|polygon|polyline|mask)"', classes=rb'"type":"label"'),
    _Form("annotations of Datumaro", ("annotations",), r".+\.json",
          _LABELS + rb'[\s\S]*"type"\s*:\s*"(?:bbox|polygon)"', _DATUMARO),
    _Form("annotations of Datumaro", ("annotations",), r".+\.json", _LABELS),
    _Form("annotations of Datumaro", ("annotations",), r".+\.datum"),
    _Form("annotations of Segment Anything", ("",), r".+\.json", rb'"(?:crop_box|stability_score)"', _SEGMENTS),
    _Form("annotations of the VGG Image Annotator", ("", "annotations"), r".+\.json", rb'"shape_attributes"'),
    _Form("annotations of Label Studio", ("",), r".+\.json", rb'"(?:from_name|completed_by)"'),
    _Form("annotations of V7 Darwin", ("releases/latest/annotations", "annotations", ""), r".+\.json",
          rb'\A\s*\{[\s\S]*"(?:schema_ref"\s*:\s*"[^"]*darwin|dataset"\s*:[\s\S]*"item"\s*:\s*\{)', _DARWIN),
    _Form("annotations of Supervisely", ("ann",), r".+\.json", rb'"classTitle"|"objects"', each=True),
    _Form("boxes of VisDrone", ("annotations",), r".+\.txt", rb"\A(?:[0-9]+,){7}[0-9]+,?\s", each=True),
    _Form("annotations of CreateML", ("",), r".*createml\.json", b"", _CREATE_ML),
    _Form("classes of whole pictures of COCO", ("annotations",), r"labels[_-].+\.json", rb'"category_id"',
          "coco_labels", boxes=rb'"bbox"', classes=rb'"category_id"'),
    _Form("panoptic segments of COCO", ("annotations",), r"panoptic_.+\.json", advice="give instances_*.json too"),
    _Form("boxes of KITTI", ("label_2",), r".+\.txt", rb"\S+(?: -?[0-9.]+){14}"),
    _Form("tracks of MOT", ("gt",), r"gt\.txt", rb"[0-9]+,-?[0-9]+,", "mot_seq", exact=False),
    _Form("oriented boxes of DOTA", ("labelTxt",), r".+\.txt", advice="write them as YOLO's, of eight numbers"),
    _Form("texts of ICDAR", ("",), r"gt(?:_.+)?\.txt",
          rb"\A(?:\xef\xbb\xbf)?\s*(?:(?:-?[0-9.]+, *){4}\S|(?:-?[0-9.]+[ \t]+){4}[^0-9\s-]|x: *\[\[)"),
    _Form("boxes of WIDER FACE", ("wider_face_split",), r".+_bbx_gt\.txt"),
    _Form("boxes of Open Images", ("annotations",), r".+-annotations-bbox\.csv", b"ImageID,", "open_images"),
    _Form("masks of Cityscapes", ("gtFine", "gtCoarse"), r".+\.png", advice=_TABLE),
    _Form("masks of KITTI", ("semantic", "semantic_rgb"), r".+\.png", advice=_TABLE),
    _Form("masks of MVTec", ("ground_truth",), r".+_mask\.png", advice=_TABLE),
    _Form("masks of CamVid", ("trainannot", "valannot", "testannot"), r".+\.png", advice=_TABLE),
)  # fmt: skip


def refuse_other_sets(given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> None:
    """Raises `InputError` where a folder of pictures has annotations of a form that is not read."""
    top = root_of(given, paths, base)
    root = _only_folder(top)
    typed = paths[0] if root == top else os.path.join(paths[0], os.path.relpath(root, top))
    places = folders_of_splits(root) if root else []
    splits = [*places[1:], *folders_of_splits(os.path.join(root, "images"))[1:]] if root else []

    inner = [os.path.join(root, one) for one in folders_in(root)] if root else []
    inner = [one for one in inner if one not in places] if len(inner) <= _MOST_FOLDERS else []

    @cache
    def files_of(folder: str) -> list[str]:
        return [os.path.join(folder, one) for one in files_in(folder)] if folder in places else files_below(folder)

    for form in _FORMS:
        for place in splits if form.in_splits else [*places, *inner] if form.each else places:
            heads = dict(_heads_of(form, place, files_of))
            if heads:
                raise InputError(_what_to_do(form, typed, root if form.exact else place, root, heads, call))


def _heads_of(form: _Form, place: str, files_of: Callable[[str], list[str]]) -> Iterator[tuple[str, bytes]]:
    for folder in form.folders:
        inner = os.path.join(place, folder) if folder else place
        files = files_of(inner) if os.path.isdir(inner) else []
        for path in [one for one in files if re.fullmatch(form.names, os.path.basename(one))][:MOST_HEADS]:
            head = beginning_of(path, _SET_HEAD)
            if re.search(form.head, head) if form.head else True:
                yield path, head


def _text(text: str) -> str:
    """Return a text of Python in double quotes, as the line is in single ones for a shell."""
    return json.dumps(text, ensure_ascii=False)


_TO_COCO: Final = {
    _CREATE_ML: (  # Datumaro takes the middles of its boxes for corners
        "import json, pathlib; sets = {path: json.loads(path.read_bytes()) for path in "
        'sorted(pathlib.Path(ROOT).rglob("*createml.json"))}; '
        'names = sorted({one["label"] for rows in sets.values() for row in rows for one in row["annotations"]}); '
        '[path.with_name("_annotations.coco.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": row["image"]} for at, row in enumerate(rows)], '
        '"categories": [{"id": at, "name": name} for at, name in enumerate(names)], '
        '"annotations": [{"id": n, "image_id": at, "category_id": names.index(one["label"]), '
        '"bbox": [c["x"] - c["width"] / 2, c["y"] - c["height"] / 2, c["width"], c["height"]]} '
        'for n, (at, one, c) in enumerate((at, one, one["coordinates"]) for at, row in enumerate(rows) '
        'for one in row["annotations"])]}, ensure_ascii=False).encode()) for path, rows in sets.items()]'
    ),
    _SEGMENTS: (  # its objects have no classes
        'import itertools, json, pathlib; [folder.joinpath("_annotations.coco.json").write_bytes(json.dumps({'
        '"images": [{**one["image"], "id": at} for at, one in enumerate(sets)], '
        '"categories": [{"id": 0, "name": "object"}], "annotations": [{**one, "image_id": at, "category_id": 0} '
        'for at, each in enumerate(sets) for one in each["annotations"]]}, ensure_ascii=False).encode()) '
        'for folder, files in itertools.groupby(sorted(pathlib.Path(ROOT).rglob("[!_]*.json")), lambda it: it.parent) '
        "for sets in [[json.loads(one.read_bytes()) for one in files]]]"
    ),
    _CVAT: (  # Datumaro refuses it without <meta>
        "import cmath, json, math, pathlib, xml.etree.ElementTree as tree; root = pathlib.Path(ROOT); "
        'sets = {path: [*tree.parse(path).getroot().iter("image")] for folder in (root, root / "annotations") '
        'for path in sorted(folder.glob("*.xml"))}; '
        'number = lambda one, *names: [float(one.get(name, "0")) for name in names]; '
        'corners = lambda one: [complex(*map(float, it.split(","))) for it in one.get("points").split(";")] '
        'if one.tag == "polygon" else [z + (z - m) * (cmath.rect(1, math.radians(*number(one, "rotation"))) - 1) '
        'for a, b, c, d in [number(one, "xtl", "ytl", "xbr", "ybr")] for m in [complex(a + c, b + d) / 2] '
        "for z in (complex(a, b), complex(c, b), complex(c, d), complex(a, d))]; "
        'file = lambda path, name: next((str(it) for it in [pathlib.Path(one, name) for one in ("images", '
        'f"images/{path.stem}", "")] if (root / it).is_file()), name); '
        'shapes = lambda image: [one for one in image if one.tag in ("box", "polygon")]; '
        'names = sorted({one.get("label") for images in sets.values() for image in images for one in shapes(image)}); '
        '[(root / f"instances_{path.stem}.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": file(path, image.get("name"))} for at, image in enumerate(images)], '
        '"categories": [{"id": at, "name": name} for at, name in enumerate(names)], '
        '"annotations": [{"id": n, "image_id": at, "category_id": names.index(label), '
        '"bbox": [min(x), min(y), max(x) - min(x), max(y) - min(y)]} for n, (at, label, x, y) in enumerate('
        '(at, one.get("label"), [z.real for z in corners(one)], [z.imag for z in corners(one)]) '
        "for at, image in enumerate(images) for one in shapes(image))]}, ensure_ascii=False).encode()) "
        "for path, images in sets.items() if images]"
    ),
    _DARWIN: (  # a file of COCO's for each of its random lists; tags, lines and points are no boxes
        "import json, pathlib; root = pathlib.Path(ROOT); sets = {}; "
        'lists = {line.strip(): path.stem.rpartition("_")[2] for path in sorted(root.rglob("lists/random_*.txt")) '
        "for line in path.read_text().splitlines()}; "
        '[sets.setdefault(lists.get(path.name, "other" if lists else "train"), []).extend([(next((str(it) for it in '
        'some if (root / it).is_file()), str(some[0])), [it for it in one["annotations"] if "bounding_box" in it])]) '
        'for path in sorted(root.rglob("*.json")) for one in [json.loads(path.read_bytes())] '
        'if isinstance(one, dict) and isinstance(one.get("annotations"), list) and "item" in one '
        'for item in [one["item"]] for some in [[pathlib.Path(it, item.get("path", "").strip("/"), item["name"]) '
        'for it in ("images", "")]]]; '
        'names = sorted({it["name"] for rows in sets.values() for _, some in rows for it in some}); '
        '[(root / f"instances_{split}.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": name} for at, (name, _) in enumerate(rows)], '
        '"categories": [{"id": at, "name": name} for at, name in enumerate(names)], '
        '"annotations": [{"id": n, "image_id": at, "category_id": names.index(it["name"]), '
        '"bbox": [it["bounding_box"][key] for key in "xywh"]} for n, (at, it) in enumerate((at, it) '
        "for at, (_, some) in enumerate(rows) for it in some)]}, ensure_ascii=False).encode()) "
        "for split, rows in sets.items()]"
    ),
    _DATUMARO: (  # of CVAT's exports, which have two media of each item, Datumaro refuses all
        "import cmath, json, math, pathlib; root = pathlib.Path(ROOT); "
        'sets = {path: json.loads(path.read_bytes()) for path in sorted(root.glob("annotations/*.json"))}; '
        "file = lambda path, name: next((str(it) for it in [pathlib.Path(one, name) for one in "
        '(f"images/{path.stem}", "images", "")] if (root / it).is_file()), name); '
        'corners = lambda one: [complex(*it) for it in zip(one["points"][::2], one["points"][1::2])] '
        'if one["type"] == "polygon" else [z + (z - m) * (cmath.rect(1, math.radians(float('
        'one["attributes"].get("rotation", 0)))) - 1) for x, y, w, h in [one["bbox"]] '
        "for m in [complex(x + w / 2, y + h / 2)] "
        "for z in (complex(x, y), complex(x + w, y), complex(x + w, y + h), complex(x, y + h))]; "
        '[(root / f"instances_{path.stem}.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": file(path, item["image"]["path"])} for at, item in enumerate(items)], '
        '"categories": [{"id": at, "name": it["name"]} for at, it in enumerate(one["categories"]["label"]["labels"])], '
        '"annotations": [{"id": n, "image_id": at, "category_id": label, '
        '"bbox": [min(x), min(y), max(x) - min(x), max(y) - min(y)]} for n, (at, label, x, y) in enumerate('
        '(at, it["label_id"], [z.real for z in corners(it)], [z.imag for z in corners(it)]) '
        'for at, item in enumerate(items) for it in item["annotations"] if it["type"] in ("bbox", "polygon"))]}, '
        'ensure_ascii=False).encode()) for path, one in sets.items() for items in [one["items"]]]'
    ),
    _LABELME: (  # its paths may be of before the pictures were moved
        "import json, os, pathlib, re; root = pathlib.Path(ROOT); sets = {}; "
        '[sets.setdefault(place, []).extend([(os.path.relpath(picture, place), [it for it in one["shapes"] '
        'if it["shape_type"] in ("rectangle", "polygon")])]) for path in sorted(root.rglob("*.json")) '
        'for one in [json.loads(path.read_bytes())] if isinstance(one, dict) and "shapes" in one '
        'for name in [pathlib.PureWindowsPath(one["imagePath"])] '
        'for beside in [root / re.sub("labels|[Aa]nnotations", "images", str(path.parent.relative_to(root)))] '
        "for some in [[path.parent / name.as_posix(), path.parent / name.name, beside / name.name]] "
        "for picture in [next((it for it in some if it.is_file()), some[0])] "
        'for place in [root / re.sub("(^|/)images$", "", os.path.relpath(picture.parent, root))]]; '
        'names = sorted({it["label"] for rows in sets.values() for _, shapes in rows for it in shapes}); '
        '[place.joinpath("_annotations.coco.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": name} for at, (name, _) in enumerate(rows)], '
        '"categories": [{"id": at, "name": name} for at, name in enumerate(names)], '
        '"annotations": [{"id": n, "image_id": at, "category_id": names.index(label), '
        '"bbox": [min(x), min(y), max(x) - min(x), max(y) - min(y)]} for n, (at, label, x, y) in enumerate('
        '(at, it["label"], *zip(*it["points"])) for at, (_, shapes) in enumerate(rows) for it in shapes)]}, '
        "ensure_ascii=False).encode()) for place, rows in sets.items()]"
    ),
}
"""What writes a file of COCO's beside the pictures of each folder."""


def _by_datumaro(root: str, importer: str, kind: str) -> tuple[str, str]:
    """Return a folder, and the line of Python by which Datumaro writes a set there: as COCO, or folders of `classes`.

    Arrow shows in Datumaro alone whether pictures have boxes.
    """
    made = typed_path(f"{os.path.abspath(root)}-{kind}")
    target, form = _text("imagenet_with_subset_dirs" if kind == "classes" else "coco_instances"), ""
    if importer == "arrow":
        only = '{one.type.name for each in found for one in each.annotations} == {"label"}'
        target = f'"imagenet_with_subset_dirs" if {only} else "coco_instances"'
        form = ', image_ext=".png"'  # it encodes JPEGs again, with loss
    return made, (  # objects of one group would be one object of COCO's, which has no rotated boxes
        f"import datumaro; found = datumaro.Dataset.import_from({_text(typed_path(root))}, {_text(importer)}); "
        '[setattr(one, "group", 0) for each in found for one in each.annotations]; '
        '[setattr(each, "annotations", [datumaro.Polygon(sum(map(list, one.as_polygon()), []), label=one.label) '
        'if one.type.name == "rotated_bbox" else one for one in each.annotations]) for each in found]; '
        f"found.export({_text(made)}, {target}, save_media=True{form})"
    )


def _only_folder(root: str) -> str:
    """Return the folder below that holds all that a folder holds, as an archive has one of its own name."""
    for _ in range(_MOST_LEVELS if root else 0):
        with os.scandir(root) as entries:
            shown = (one for one in entries if why_skipped(os.fsencode(one.name)) is None)
            first, second = next(shown, None), next(shown, None)
        if first is None or second is not None or not first.is_dir() or first.name in _ALL_PICTURES:
            break
        root = first.path
    return root


_MOST_LEVELS: Final = 3
_ALL_PICTURES: Final = ("images", "JPEGImages")


_ROTATED: Final = re.compile(rb' rotation="|"rotation"\s*:\s*-?(?:[1-9]|0\.0*[1-9])')


def _what_to_do(form: _Form, typed: str, imported: str, root: str, heads: Mapping[str, bytes], call: Call) -> str:
    has_boxes = any(re.search(form.boxes, head) for head in heads.values())
    has_classes = any(re.search(form.classes, head) for head in heads.values())
    clip = [Set("schema.boxes", "clip")] if any(map(_ROTATED.search, heads.values())) else []
    how = form.advice
    if form.importer not in ("", *_TO_COCO) and imported == root:
        kind = "classes" if has_classes and not has_boxes else "coco"
        made, line = _by_datumaro(root, form.importer, kind)
        left = f"all but {'tags, ' * has_classes}{_BUT} " if form.boxes and kind == "coco" else ""
        how = f"{left}with Datumaro: {Foreign('python', '-c', line)} && {call.reading([made], *clip)}"
    if form.importer in _TO_COCO:
        write = Foreign("python", "-c", _TO_COCO[form.importer].replace("ROOT", _text(typed_path(root))))
        made, what = (
            typed,
            "the boxes of rectangles and polygons " if form.importer in (_LABELME, _CVAT, _DARWIN, _DATUMARO) else "",
        )
        if form.importer == _LABELME:
            inner = os.path.join(root, "images")
            made = os.path.join(typed, "images") if folders_of_splits(inner)[1:] else typed
        how = f"{what}in Python: {write} && {call.reading([made], *clip)}"
    by_folders = _in_splits_alone(root)
    flat = [Set("input.layout", "flat"), Set("input.splits", "none")]
    means = [Set("input.layout", "split")] if by_folders else flat
    in_images = len(folders_of_splits(os.path.join(root, "images"))) > 2
    in_splits = (in_images or len(folders_of_splits(root)) > 2) and not by_folders
    without = ", without the splits of their folders" if in_splits else ""
    alone = call.reading([typed], Set("input.format", "images"), *means)
    also = "" if form.advice is _TABLE else f"; the pictures alone{without}: {alone}"  # masks are pictures too
    places = [one for one in folders_of_splits(root)[1:] if os.path.dirname(one) == root.rstrip("/")]
    if form.folders == ("ground_truth",) and len(places) > 1:
        also = f"; the pictures alone, with their folders as classes: {call.reading(map(typed_path, places))}"
    return f"{shown_path(next(iter(heads)))}: {form.called}, which are not read; {how}{also}"


def _in_splits_alone(root: str) -> bool:
    """Return whether all pictures are in folders that are splits, without classes: `training/image_2/7.png`."""
    folders = folders_of_splits(root)[1:]
    below = [one for one in files_below(root) if not is_other_file(os.fsencode(os.path.basename(one)))]
    in_splits = all(any(one.startswith(f"{folder}/") for folder in folders) for one in below)
    return len(folders) > 1 and bool(below) and in_splits


_ARRAYS: Final = re.compile(r"(.+)-images[-.]idx3-ubyte(?:\.gz)?")
_NAMED: Final = {"t10k": "test"}


def refuse_mnist(paths: Sequence[str], base: str, call: Call) -> None:
    """Raises `InputError` where a folder has arrays as MNIST has them, with the lines of Python that read them."""
    root = os.path.join(base, paths[0])
    found = os.listdir(root) if len(paths) == 1 and os.path.isdir(root) else []
    names = sorted(name for name in found if "-ubyte" in name)
    pictures = {match[1]: one for one in names if (match := _ARRAYS.fullmatch(one))}
    lines = list[str]()
    for stem in sorted(pictures, key=lambda one: (split_in_words(one) != "train", one)):
        labels = pictures[stem].replace("images", "labels").replace("idx3", "idx1")
        shape = _shape_of(os.path.join(root, pictures[stem]))
        if shape is None:
            continue
        cells = {"image": f"{_array(paths[0], pictures[stem], 16)}.reshape(-1, {shape[0]}, {shape[1]})"}
        cells |= {"label": _array(paths[0], labels, 8)} if labels in names else {}
        data = f"{{{', '.join(f'{key!r}: {value}' for key, value in cells.items())}}}"
        split = _NAMED.get(stem) or split_in_words(stem) or "train"
        more = {} if split == "train" else {"output__split": split}
        lines.append(str((replace(call, command="append") if lines else call).of_data(data, **more)))
    if lines:
        one = next(iter(pictures.values()))
        shown = shown_path(os.path.join(paths[0], one))
        raise InputError(f"{shown}: arrays of MNIST's form, which are not read; in Python: {'; '.join(lines)}")


def _array(folder: str, name: str, offset: int) -> str:
    data = f"pathlib.Path({os.path.join(folder, name)!r}).read_bytes()"
    return f"numpy.frombuffer({f'gzip.decompress({data})' if name.endswith('.gz') else data}, 'u1', offset={offset})"


def _shape_of(path: str) -> tuple[int, int] | None:
    head = unpacked(beginning_of(path, HEAD_BYTES), _HEADER)
    rows, columns = struct.unpack(">8xII", head[:_HEADER]) if len(head) >= _HEADER else (0, 0)
    return (rows, columns) if head.startswith(b"\0\0\x08\x03") else None


_HEADER: Final = 16
