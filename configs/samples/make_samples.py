"""Make the sample data of this folder, the same each time: a folder each, by the functions of `make_all`.

    python configs/samples/make_samples.py

Noise comes from SHAKE-256, so that no library's random numbers play a part; only the bytes of the JPEG, PNG and Parquet
files depend on the versions of Pillow and pyarrow.
"""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
import json
import math
import tarfile
import wave
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
UTC = dt.UTC


def noise(name: str, *shape: int) -> npt.NDArray[np.uint8]:
    """Return bytes that look random and depend on the name alone."""
    data = hashlib.shake_256(name.encode()).digest(math.prod(shape))
    return np.frombuffer(data, np.uint8).reshape(shape)


def make_pets(folder: Path) -> None:
    """25 images in three class folders: JPEG and PNG, one cut short; and two files that are no images to read."""
    for kind, count in (("cat", 9), ("dog", 8), ("owl", 8)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in range(1, count + 1):
            name = f"{kind}-{number}"
            image = draw_pet(kind, name)
            if number % 3 == 0:
                image.resize((66, 66)).save(folder / kind / f"{name}.png", optimize=True)
            else:
                mode = "L" if number == 8 else "RGB"  # one grey image a class: not every image has three channels
                image.convert(mode).save(folder / kind / f"{name}.jpg", quality=93, progressive=number == 5)
    cut = folder / "dog" / "dog-7.jpg"
    cut.write_bytes(cut.read_bytes()[:4000])
    (folder / "cat" / ".draft.jpg").write_bytes(b"a hidden file: skipped and counted\n")
    (folder / "Thumbs.db").write_bytes(b"a system's junk: skipped and counted\n")


def draw_pet(kind: str, name: str) -> Image.Image:
    """Draw a face on a mottled background: pointed ears are a cat, hanging ones a dog, big eyes an owl."""
    width, height = (144, 112) if noise(name + " shape", 1)[0] % 2 else (120, 128)
    tint = noise(name + " tint", 3).astype(np.int16)
    ramp = np.linspace(0, 60, width, dtype=np.int16)[None, :, None]
    ground = 60 + tint // 4 + ramp + noise(name, height, width, 3) % 28
    image = Image.fromarray(ground.clip(0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    fur = tuple(int(90 + value % 130) for value in noise(name + " fur", 3))
    dark = tuple(value // 3 for value in fur)
    x, y, r = width // 2, height // 2 + 6, 36

    if kind == "cat":
        for side in (-1, 1):
            pen.polygon(
                [(x + side * 34, y - 10), (x + side * 30, y - 56), (x + side * 6, y - 30)], fill=fur, outline=dark
            )
    pen.ellipse((x - r, y - r, x + r, y + r), fill=fur, outline=dark)
    if kind == "dog":
        for side in (-1, 1):
            pen.ellipse((x + side * 36 - 11, y - 30, x + side * 36 + 11, y + 22), fill=dark)
    eye = 13 if kind == "owl" else 6
    for side in (-1, 1):
        centre = x + side * 14
        pen.ellipse((centre - eye, y - 10 - eye, centre + eye, y - 10 + eye), fill=(250, 240, 190), outline=dark)
        pen.ellipse((centre - 3, y - 13, centre + 3, y - 7), fill=(10, 10, 10))
    if kind == "owl":
        pen.polygon([(x - 6, y + 2), (x + 6, y + 2), (x, y + 16)], fill=(230, 160, 40))
    else:
        pen.ellipse((x - 6, y + 6, x + 6, y + 14), fill=dark)
        for side in (-1, 1):
            pen.arc((x + side * 9 - 9, y + 10, x + side * 9 + 9, y + 24), 10, 170, fill=dark, width=2)
    return image


NAMES = (
    "Ada Lovelace",
    "Jürgen Groß",
    "Zoë O'Neill",
    "李小龙",
    'Mary "Mae" Smith',
    "Søren Kjær",
    "Frida Kahlo",
    "Ali, Ömer",
)
NOTES = ("", 'likes "quotes", and commas', "first line\nsecond line", "naïve café ☕", "NA is text here", "plain")


def make_people(folder: Path) -> None:
    """Two CSV files: quotes, quoted line breaks, nulls, text that looks like numbers, names from everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in (1, 2):
        rows = [person(number) for number in range(60 * (part - 1), 60 * part)]
        with (folder / f"people-{part}.csv").open("w", newline="", encoding="utf-8") as file:
            # LF and CRLF: both end a record
            writer = csv.writer(file, lineterminator="\n" if part == 1 else "\r\n")
            writer.writerow(["id", "name", "zip", "joined", "score", "visits", "member", "note"])
            writer.writerows(rows)
            if part == 2:
                # what a csv.writer never writes: a quoted empty cell, which is an empty text and no null
                file.write('1120,"","00000",2020-03-01T00:00:00,,0,true,""\r\n')


def person(number: int) -> list[str]:
    """Return one row; an empty cell is a null."""
    dice = noise(f"person {number}", 4).tolist()
    joined = dt.datetime(2020, 1, 1) + dt.timedelta(hours=7 * number + dice[0])
    return [
        str(1000 + number),
        NAMES[number % len(NAMES)],
        f"{(dice[1] * 367 + number) % 100000:05d}",  # leading zeros: a string, declared in csv.yaml
        joined.isoformat(sep="T"),
        "" if dice[2] % 7 == 0 else f"{dice[2] / 8:.3f}",
        "" if dice[3] % 9 == 0 else str(dice[3]),
        "true" if dice[0] % 2 else "false",
        NOTES[(number + dice[1]) % len(NOTES)],
    ]


def make_trips(folder: Path) -> None:
    """Two Parquet files with several row groups and page checksums: lists, nulls, time stamps, a fare with cents."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("start", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("fare", pa.float64()),
            pa.field("stops", pa.list_(pa.string())),
            pa.field("distances", pa.list_(pa.float32())),
            pa.field("vehicle", pa.dictionary(pa.int32(), pa.string())),
        ]
    )
    for part in (1, 2):
        rows = [trip(number) for number in range(150 * (part - 1), 150 * part)]
        table = pa.Table.from_pylist(rows, schema)
        pq.write_table(table, folder / f"trips-{part}.parquet", row_group_size=50, write_page_checksum=True)


def trip(number: int) -> dict[str, Any]:
    """Return one row; None is a null, and an empty list is a list."""
    dice = noise(f"trip {number}", 12).tolist()
    count = dice[0] % 5
    return {
        "id": number,
        "start": dt.datetime(2024, 3, 1, tzinfo=UTC) + dt.timedelta(minutes=13 * number, microseconds=dice[1]),
        "fare": None if dice[2] % 11 == 0 else round(2.5 + dice[2] / 7, 2),
        "stops": None if dice[3] % 13 == 0 else [f"S{stop % 40:02d}" for stop in dice[4 : 4 + count]],
        "distances": [stop / 16 for stop in dice[4 : 4 + count]],
        "vehicle": ("tram", "bus", "ferry")[dice[11] % 3],
    }


def make_arrays(folder: Path) -> None:
    """Eight NumPy arrays of one type and rank and of several lengths: each becomes one record."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(8):
        rows = 20 + 5 * number
        wave = np.sin(np.arange(rows * 16).reshape(rows, 16) / (3 + number)) + noise(f"array {number}", rows, 16) / 512
        array = wave.astype(">f4" if number == 3 else "<f4")  # another byte order is converted
        np.save(folder / f"wave-{number}.npy", np.asfortranarray(array) if number == 5 else array)


def make_reviews(folder: Path) -> None:
    """Two files of JSON lines: keys that some lines lack, nulls, lists, text that looks like dates and numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in (1, 2):
        lines = [json.dumps(review(number), ensure_ascii=part == 1) for number in range(50 * (part - 1), 50 * part)]
        (folder / f"reviews-{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def review(number: int) -> dict[str, Any]:
    """Return one object."""
    dice = noise(f"review {number}", 4).tolist()
    day = dt.date(2023, 1, 1) + dt.timedelta(days=3 * number)
    found: dict[str, Any] = {
        "id": 5000 + number,
        "date": day.isoformat(),
        "stars": dice[0] % 5 + 1 if number % 7 else dice[0] % 5 + 0.5,  # integers and others: floats
        "author": NAMES[dice[1] % len(NAMES)] if dice[1] % 11 else None,
        "tags": ["cat", "dog", "owl"][: dice[2] % 4],
        "order": f"{dice[3]:06d}",
    }
    if dice[2] % 5 == 0:
        found["verified"] = bool(dice[3] % 2)
    return found


def make_orders(folder: Path) -> None:
    """A file as a German office writes it, with semicolons, decimal commas and dates that begin with the day."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["order;day;price;discount;status;note"]
    rows += [";".join(order(number)) for number in range(120)]
    (folder / "orders.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def order(number: int) -> list[str]:
    """Return one line: a price of euros, a discount in percent that may lack, a status, a note that is mostly empty."""
    dice = noise(f"order {number}", 5).tolist()
    day = dt.date(2024, 1, 1) + dt.timedelta(days=number)
    cents = dice[0] * 997 + dice[1]
    euros = f"{cents // 100:,}".replace(",", ".") + f",{cents % 100:02d} €"
    status = ("open", "paid", "paid", "sent", "cancelled")[dice[2] % 5]
    discount = f"{dice[3] % 30} %" if dice[3] % 3 else ""
    return [
        str(70000 + number),
        day.strftime("%d.%m.%Y"),
        euros,
        discount,
        status,
        "ring twice" if dice[4] < 20 else "",
    ]


CART = pa.schema(
    [
        ("id", pa.int64()),
        ("buyer", pa.struct([("name", pa.string()), ("city", pa.string())])),
        ("lines", pa.list_(pa.struct([("item", pa.string()), ("count", pa.int32())]))),
        ("clicks", pa.list_(pa.list_(pa.int16()))),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("total", pa.decimal128(9, 2)),
    ]
)


def make_carts(folder: Path) -> None:
    """A Parquet file of nested columns: a struct, a list of structs, a list of lists, a map, a decimal; and nulls."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([cart(number) for number in range(100)], CART)
    pq.write_table(table, folder / "carts.parquet", write_page_checksum=True)


def cart(number: int) -> dict[str, Any]:
    """Return one row."""
    dice = noise(f"cart {number}", 6).tolist()
    lines = [{"item": ("cup", "pot", "tea")[k % 3], "count": dice[k % 6] % 9 + 1} for k in range(dice[0] % 4)]
    return {
        "id": 9000 + number,
        "buyer": {"name": NAMES[dice[1] % len(NAMES)], "city": "Kiel"} if dice[1] % 6 else None,
        "lines": lines,
        "clicks": [[dice[2] % 7, dice[3] % 7], []][: dice[2] % 3] if dice[3] % 8 else None,
        "labels": [("gift", "yes"), ("lane", str(dice[4] % 5))][: dice[4] % 3],
        "total": Decimal(dice[5] * 173 + number).scaleb(-2),
    }


def make_clips(folder: Path) -> None:
    """A table that names sounds of a twentieth of a second, each a tone; one row names none."""
    (folder / "sounds").mkdir(parents=True, exist_ok=True)
    rows = ["id,clip,tone"]
    for number, tone in enumerate((220, 330, 440, 550, 660, 880), 1):
        name = f"sounds/tone-{tone}.wav"
        moments = np.arange(400) / 8000
        with wave.open(str(folder / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(1)
            file.setframerate(8000)
            file.writeframes((128 + 100 * np.sin(2 * np.pi * tone * moments)).round().astype(np.uint8).tobytes())
        rows.append(f"{number},{name},{tone}")
    (folder / "clips.csv").write_text("\n".join([*rows, "7,,0"]) + "\n")


def make_portraits(folder: Path) -> None:
    """A table of captions that names its pictures, two of which are drawn for each kind of pet."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    rows = ["photo,caption"]
    for kind in ("cat", "dog", "owl"):
        for number, words in enumerate(("looks straight at you", "against the light"), 1):
            name = f"pictures/{kind}-{number}.jpg"
            draw_pet(kind, f"{kind} portrait {number}").save(folder / name, quality=93)
            rows.append(f"{name},A {kind} that {words}" if number == 1 else f'{name},"A {kind}, {words}"')
    (folder / "captions.csv").write_text("\n".join(rows) + "\n")


def make_albums(folder: Path) -> None:
    """Pictures with a table beside them in the folder of each split: captions, and who is in it; one has no row."""
    for split, kinds in (("train", ("owl", "cat", "dog")), ("val", ("dog", "cat"))):
        (folder / split / "photos").mkdir(parents=True, exist_ok=True)
        rows = []
        for number, kind in enumerate(kinds, 1):
            name = f"photos/{number}.jpg"
            draw_pet(kind, f"{split} album {number}").save(folder / split / name, quality=93)
            row = {"file_name": name, "caption": f"The {kind} of the {split} album", "kind": kind, "likes": 7 * number}
            rows.append(json.dumps(row))
        rows.reverse()
        (folder / split / "metadata.jsonl").write_text("\n".join(rows) + "\n")
    draw_pet("owl", "left out").save(folder / "train" / "photos" / "left-out.jpg", quality=93)


def make_shelter(folder: Path) -> None:
    """Write pictures as they are found in folders of splits, and in these a folder for each class."""
    for split, count in (("train", 3), ("val", 1)):
        for kind in ("cat", "dog"):
            (folder / split / kind).mkdir(parents=True, exist_ok=True)
            for number in range(1, count + 1):
                image = draw_pet(kind, f"shelter {split} {kind} {number}")
                image.resize((64, 48)).save(folder / split / kind / f"{number}.jpg", quality=80)


def make_shards(folder: Path) -> None:
    """Tar archives as WebDataset has them: pictures with their class, a caption, and JSON with who took them."""
    folder.mkdir(parents=True, exist_ok=True)
    for shard in range(2):
        with tarfile.open(folder / f"pets-{shard:06d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(6):
                label, key = number % 3, f"{6 * shard + number:04d}"
                kind = ("cat", "dog", "owl")[label]
                held = io.BytesIO()
                draw_pet(kind, f"shard {shard} pet {number}").save(held, "JPEG", quality=93)
                facts = {"photographer": f"nr {number % 4}", "likes": 3 * number, "size": {"cm": 20.5 + number}}
                members = {"jpg": held.getvalue(), "cls": f"{label}".encode(), "txt": f"A {kind}, nr {number}".encode()}
                for suffix, data in {**members, "json": json.dumps(facts).encode()}.items():
                    info = tarfile.TarInfo(f"{key}.{suffix}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


def make_street(folder: Path) -> None:
    """Pictures of cars and trees with COCO's files: boxes, polygons, run lengths, two captions each."""
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    images, objects, captions = [], [], []
    for number in range(1, 6):
        picture = Image.new("RGB", (160, 100), (190, 215, 235))
        draw = ImageDraw.Draw(picture)
        draw.rectangle([0, 70, 159, 99], fill=(120, 120, 125))
        images.append({"id": 1000 + number, "file_name": f"street-{number}.png", "width": 160, "height": 100})
        for index in range(number - 1):
            x, is_car = 8 + 36 * index, (number + index) % 2 == 0
            if is_car:
                box, category = [x, 62, 30, 14], 3
                corners = [x, 69, x + 6, 62, x + 24, 62, x + 30, 69, x + 30, 76, x, 76]
                draw.polygon(list(zip(corners[::2], corners[1::2], strict=True)), fill=(200, 40 + 30 * index, 40))
                segmentation: object = [corners]
            else:
                box, category = [x, 30, 20, 40], 64
                draw.rectangle([x, 30, x + 19, 69], fill=(40, 120 + 20 * index, 50))
                rows = [100 * (x + column) + 30 for column in range(20)]
                counts = [rows[0], 40, *(value for _ in rows[1:] for value in (60, 40)), 16000 - rows[-1] - 40]
                segmentation = {"size": [100, 160], "counts": counts}
            objects.append({
                "id": len(objects) + 1, "image_id": 1000 + number, "category_id": category, "bbox": box,
                "area": box[2] * box[3], "iscrowd": 0 if is_car else 1, "segmentation": segmentation,
            })  # fmt: skip
        picture.save(folder / "pictures" / f"street-{number}.png")
        for words in (f"a street with {number - 1} things", "an empty street" if number == 1 else "a street by day"):
            captions.append({"id": len(captions) + 1, "image_id": 1000 + number, "caption": words})
    categories = [{"id": 3, "name": "car"}, {"id": 64, "name": "potted plant"}]
    instances = {"images": images, "annotations": objects, "categories": categories}
    (folder / "instances.json").write_text(json.dumps(instances, indent=1) + "\n")
    (folder / "captions.json").write_text(json.dumps({"images": images, "annotations": captions}, indent=1) + "\n")


PLACES = ("Kiel", "Århus", "Poznań", '"Gdańsk | Oliwa"')


def make_stations(folder: Path) -> None:
    """A table as a logger prints it: a title, remarks, blanks that align columns, a sign for what is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["Weather stations, exported on 2024-05-01", "# degrees Celsius, millimetres of rain"]
    lines.append("station | place            | kind    | degrees | rain")
    for number in range(90):
        if number % 30 == 29:
            lines.append("# the battery was changed")
        lines.append(station(number))
    (folder / "stations.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def station(number: int) -> str:
    """Return one line; those that end early lack their last cell."""
    dice = noise(f"station {number}", 4).tolist()
    degrees = "-" if dice[2] % 9 == 0 else f"{dice[2] / 8 - 9:.1f}"
    cells = [
        f"{number:<7}",
        f"{PLACES[dice[0] % len(PLACES)]:<16}",
        f"{('coast', 'inland', 'island')[dice[1] % 3]:<7}",
        f"{degrees:>7}",
    ]
    return " | ".join([*cells, f"{dice[3] % 40:>4}"] if dice[3] % 11 else cells)


def make_rides(folder: Path) -> None:
    """Arrow files (Feather) as polars and pandas write them: categories, a list, times of day, a duration, nulls.

    The second one is of a later year, with other columns.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dice = noise("rides", 80, 4).astype(int)
    table = pa.table(
        {
            "bike": pa.array([f"bike {one % 9}" for one in dice[:, 0].tolist()]).dictionary_encode(),
            "taken": pa.array([one * 300 for one in dice[:, 1].tolist()], pa.time32("s")),
            "lasted": pa.array([one * 20 if one % 8 else None for one in dice[:, 2].tolist()], pa.duration("s")),
            "stops": pa.array([[one % 7, one % 5][: one % 3] for one in dice[:, 3].tolist()], pa.list_(pa.int16())),
        }
    )
    with pa.ipc.new_file(folder / "rides.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=40)
    skies = ("dry", "rain", "wind")
    later = table.slice(0, 30).drop_columns(["stops"])
    later = later.append_column("weather", pa.array([skies[one % 3] for one in dice[:30, 3].tolist()]))
    with pa.ipc.new_file(folder / "rides-2.arrow", later.schema) as file:
        file.write_table(later)


def make_lines(folder: Path) -> None:
    """A text file of one sentence a line, some of them empty."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ("the cat", "an owl", "Søren", "nobody", "sleeps", "reads", "waits", "here", "there", "at noon")
    lines = []
    for number in range(100):
        first, second, third = (
            value % n for value, n in zip(noise(f"line {number}", 3).tolist(), (4, 3, 3), strict=True)
        )
        lines.append(f"{words[first]} {words[4 + second]} {words[7 + third]}" if number % 12 else "")
    (folder / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_all(folder: Path = HERE) -> None:
    """Write all samples below a folder."""
    make_pets(folder / "pets")
    make_people(folder / "people")
    make_trips(folder / "trips")
    make_arrays(folder / "arrays")
    make_reviews(folder / "reviews")
    make_orders(folder / "orders")
    make_carts(folder / "carts")
    make_clips(folder / "clips")
    make_portraits(folder / "portraits")
    make_albums(folder / "albums")
    make_shelter(folder / "shelter")
    make_shards(folder / "shards")
    make_street(folder / "street")
    make_stations(folder / "stations")
    make_rides(folder / "rides")
    make_lines(folder / "lines")


if __name__ == "__main__":
    make_all()
