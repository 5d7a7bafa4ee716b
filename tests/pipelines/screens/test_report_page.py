"""The report of a dataset: every figure of it is one of its statistics, and anyone can read it anywhere."""

from __future__ import annotations

import html
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.screens.report_facts import differences
from shardmill.pipelines.screens.report_page import DARK, LIGHT, MOST_CARDS, class_balance
from shardmill.transforms.dataset.storage.manifest_files import read_manifest, read_stats
from shardmill.transforms.observers.figures import Distinct, FeatureFigures, SplitFigures, Statistics, ValueCount

from ...command_line import Shardmill

UGLY = '<script>alert("1")</script>&\n\x07'


class Page(HTMLParser):
    """The tables of a page by their captions, all attributes, and the order of headings; figures are exact."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self._text: list[str] = []
        self._exact: str | None = None
        self._rows: list[list[str]] = []
        self._caption = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self._rows = []
        if tag == "tr":
            self._rows.append([])
        if tag in ("th", "td", "caption", "h1", "h2", "h3", "h4"):
            self._text, self._exact = [], None
        if tag == "data":
            self._exact = dict(attrs)["value"]

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td"):
            self._rows[-1].append(self._exact or "".join(self._text))
        if tag == "caption":
            self._caption = "".join(self._text)
        if tag == "table":
            self.tables[self._caption] = self._rows
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(tag)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    random, n = np.random.default_rng(1), 3000
    table = pa.table(
        {
            "price": pa.array(random.lognormal(3, 1, n), mask=random.random(n) < 0.1),
            "n": random.integers(-5, 100, n),
            "kind": random.choice(["cat", UGLY, "owl"], n, p=[0.7, 0.2, 0.1]),
            "text": [f"row {i % 50} é" for i in range(n)],
            "tags": [["a"] * (i % 4) for i in range(n)],
            UGLY: random.random(n).astype(np.float32),
        }
    )
    settings: dict[str, Any] = {"schema": {"columns": {"kind": {"label": True}}}, "stats": True}
    split = {"fractions": {"train": 0.8, "val": 0.2}}
    checks = {"leaks": {"columns": ["text"]}, "duplicates": {"columns": ["text"]}}
    convert(data=table, output=folder / "out", split=split, shard_size="64KiB", checks=checks, **settings)
    (folder / "more.csv").write_text("price,n,kind,text,tags\n")
    return folder / "out"


PageOf = Callable[..., tuple[str, Page]]


@pytest.fixture
def page_of(tmp_path: Path, shardmill: Shardmill) -> PageOf:
    """Give what makes the report of a dataset, and returns its text and what is in it."""

    def make(path: Path, *more: str) -> tuple[str, Page]:
        target = tmp_path / "report.html"
        result = shardmill("report", str(path), "-o", str(target), "--overwrite", *more)
        assert result.code == 0, result.err
        text = target.read_text()
        return text, Page(text)

    return make


def stats_of(path: Path) -> Statistics:
    found = read_stats(str(path), read_manifest(str(path)))
    assert found is not None
    return found


def figures_of(one: FeatureFigures) -> dict[str, Any]:
    """Return the figures of `stats.json` under the words of the page."""
    found: dict[str, Any] = {"present": one.present, "missing": one.missing, "values": one.values}
    if one.numbers is not None and one.classes is None:
        found |= {"min": one.numbers.min, "max": one.numbers.max, "mean": one.numbers.mean}
        found |= {"deviation": one.numbers.deviation, "zeros": one.numbers.zeros}
    if one.lengths is not None:
        found |= {"shortest list": one.lengths.min, "longest list": one.lengths.max, "mean length": one.lengths.mean}
        found |= {"empty lists": one.lengths.empty}
    if one.sizes is not None:
        found |= {"least bytes": one.sizes.min, "most bytes": one.sizes.max, "mean bytes": one.sizes.mean}
        found |= {"empty values": one.sizes.empty}
    if one.distinct is not None:
        found["distinct"] = one.distinct.count
    return found


def plain(cell: str) -> float:
    return float(cell.removeprefix("about ").replace(",", ""))


def rows_by_split(page: Page, feature: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    head, *rows = page.tables[f"Figures of {feature} by split"]
    return ((row[0], dict(zip(head, row, strict=True))) for row in rows)


def test_every_figure_of_a_feature_is_that_of_stats_json(page_of: PageOf, out: Path) -> None:
    _, page = page_of(out)
    document, compared = json.loads((out / "stats.json").read_text()), 0
    assert document["splits"].keys() == {"train", "val"}
    for split, figures in stats_of(out).splits.items():
        for name in ("price", "n", "kind", "text", "tags"):
            shown = dict(rows_by_split(page, name))[split]
            for words, value in figures_of(figures.features[name]).items():
                assert plain(shown[words]) == value, (split, name, words)
                compared += 1
            unknown = set(shown) - figures_of(figures.features[name]).keys() - {"split", "missing, share"}
            assert not unknown, unknown
    assert compared > 50


def test_the_classes_are_those_of_stats_json_with_their_shares(page_of: PageOf, out: Path) -> None:
    _, page = page_of(out)
    head, *rows = page.tables["Classes of kind by split"]
    for split, figures in stats_of(out).splits.items():
        classes, at = figures.features["kind"].classes, head.index(split)
        assert classes is not None
        assert sorted(plain(row[at]) for row in rows) == sorted(classes.values())
        assert {row[0]: plain(row[at]) for row in rows}["cat"] == classes["cat"]
        assert rows[0][at + 1].strip() == f"{100 * classes['cat'] / figures.records:.3g} %"


def test_records_without_a_class_are_counted_beside_the_classes(page_of: PageOf, tmp_path: Path) -> None:
    table = pa.table({"kind": ["a", None, "b", "a", None]})
    convert(data=table, output=tmp_path / "out", schema={"columns": {"kind": {"label": True}}})
    text, page = page_of(tmp_path / "out")
    assert page.tables["Classes of kind by split"][1] == ["a", "2", "66.7 % "]
    assert "Without a class: 2 records of train; shares are of the others." in text


def test_days_and_times_are_shown_as_such_with_the_integers_that_records_hold(page_of: PageOf, tmp_path: Path) -> None:
    start, n = datetime(2024, 1, 31, 12, tzinfo=UTC), 100
    table = pa.table(
        {
            "day": pa.array([(start + timedelta(days=i)).date() for i in range(n)]),
            "at": pa.array([start + timedelta(seconds=90 * i) for i in range(n)], pa.timestamp("ms", "Europe/Berlin")),
            "clock": pa.array([3600 + i for i in range(n)], pa.time32("s")),
            "took": pa.array([i * 60_000_000 for i in range(n)], pa.duration("us")),
        }
    )
    convert(data=table, output=tmp_path / "out", stats=True)
    text, page = page_of(tmp_path / "out")
    numbers = {name: one.numbers for name, one in stats_of(tmp_path / "out").splits["train"].features.items()}
    words = {"day": ("2024-01-31", "2024-05-09"), "clock": ("01:00:00", "01:01:39"), "took": ("0 s", "1:39:00")}
    words["at"] = ("2024-01-31 12:00:00 UTC", "2024-01-31 14:28:30 UTC")
    for name, (low, high) in words.items():
        found = dict(rows_by_split(page, name))["train"]
        figures = numbers[name]
        assert figures is not None
        exact = figures.min, figures.max, figures.mean, figures.deviation
        assert tuple(plain(found[one]) for one in ("min", "max", "mean", "deviation")) == exact
        assert ("zeros" in found) == (name == "took")
        assert f'<data value="{figures.min}">{low}</data>' in text
        assert f'<data value="{figures.max}">{high}</data>' in text
        assert f"<figcaption><span>{low}</span><span>{high}</span></figcaption>" in text
    assert ">28.87 days</data>" in text  # the deviation of 100 days in a row


def test_the_lineage_of_adopted_files_says_what_they_are(page_of: PageOf, tmp_path: Path, shardmill: Shardmill) -> None:
    convert(data={"n": [1, 2, 3]}, output=tmp_path / "out")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/a.tfrecord").write_bytes((tmp_path / "out/train-00000.tfrecord").read_bytes())
    assert shardmill("adopt", "theirs").code == 0
    text, page = page_of(tmp_path / "theirs")
    _, row = page.tables["The generations of the dataset, the latest first"]
    size = (tmp_path / "theirs/a.tfrecord").stat().st_size
    assert row[-1] == f"tfrecord, 1 file, {size} B"
    assert text.count("none: the files were adopted") == 2
    assert "sha256:0000" not in text


def test_splits_and_shards_are_those_of_the_manifest(page_of: PageOf, out: Path) -> None:
    text, page = page_of(out)
    head, *rows = page.tables["Records, shards and bytes of each split"]
    splits = read_manifest(str(out)).splits
    at = [head.index(column) for column in ("split", "records", "shards")]
    assert {tuple(row[column] for column in at) for row in rows} == {
        (name, f"{split.records:,}", f"{len(split.shards):,}") for name, split in splits.items()
    }
    assert "asked for: 64.0 KiB" in text


def test_what_differs_most_between_splits_comes_first(page_of: PageOf, out: Path) -> None:
    _, page = page_of(out)
    _, *rows = page.tables["The greatest differences between two splits"]
    found = differences(stats_of(out))
    assert [float(row[-1]) for row in rows] == [one.size for one in found]
    assert [one.size for one in found] == sorted((one.size for one in found), reverse=True)
    one, other = (figures.features["kind"].classes for figures in stats_of(out).splits.values())
    assert one is not None
    assert other is not None
    shares = [abs(one[name] / sum(one.values()) - other[name] / sum(other.values())) for name in one]
    assert max(shares) in [difference.size for difference in found]


def test_splits_stand_as_they_are_used_and_small_differences_and_values_that_come_once_are_not_shown(
    page_of: PageOf, tmp_path: Path
) -> None:
    rows = [
        {"id": f"u{i}", "x": float(i % 100) + (0.5 if i % 3 else 0), "plan": "ab"[i % 2], "part": part}
        for i, part in enumerate(["test", "val", "train"] * 100)
    ]
    convert(data=rows, output=tmp_path / "out", split={"column": "part"}, stats=True)
    text, page = page_of(tmp_path / "out")
    _, *splits = page.tables["Records, shards and bytes of each split"]
    assert [row[0] for row in splits] == ["train", "val", "test"]
    _, *found = page.tables.get("The greatest differences between two splits", [[]])
    assert "x" not in [row[0] for row in found]
    assert "u17" not in text


def test_a_number_that_is_another_constant_in_each_split_comes_before_all_else(page_of: PageOf, tmp_path: Path) -> None:
    n = 100
    table = pa.table(
        {
            "scale": [1.0] * n + [255.0] * n,
            "same": [0.1] * (2 * n),
            "day": pa.array([19_753] * n + [19_754] * n, pa.date32()),
            "x": [float(i % 7) for i in range(n)] + [float(i % 7) * 1e6 for i in range(n)],
            "part": ["train"] * n + ["val"] * n,
        }
    )
    convert(data=table, output=tmp_path / "out", split={"column": "part"})
    text, page = page_of(tmp_path / "out")
    _, *rows = page.tables["The greatest differences between two splits"]
    assert [row[:3] for row in rows[:2]] == [
        ["day", "mean: constant in each split", "train and val"],
        ["scale", "mean: constant in each split", "train and val"],
    ]
    assert '<data value="1.0">1</data> and <data value="255.0">255</data>' in text
    assert ">2024-01-31</data> and <data" in text
    assert [row[0] for row in rows[2:]] == ["x", "part"]
    assert "same" not in [row[0] for row in rows]


def test_texts_are_compared_by_the_shares_of_their_values(tmp_path: Path) -> None:
    n = 200
    rows = {
        "part": ["train"] * n + ["val"] * n,
        "source": ["web"] * 150 + ["book"] * 50 + ["web"] * 30 + ["book"] * 170,
        "id": [f"{i}" for i in range(2 * n)],
        "page": [f"{i % 40}" for i in range(n)] + ["home"] * 60 + [f"{i % 40}" for i in range(n - 60)],
    }
    convert(data=rows, output=tmp_path / "out", split={"column": "part"}, stats=True)
    found = {one.feature: (one.size, one.words) for one in differences(stats_of(tmp_path / "out"))}
    assert found["source"] == (0.6, "value: share of web")
    assert found["page"] == (pytest.approx(0.3 - 0.025), "value: share of home")  # it is not among the first of train
    assert "id" not in found  # each value is as rare as others that are not stated


def test_histograms_are_drawn_with_words_for_those_who_do_not_see_them(page_of: PageOf, out: Path) -> None:
    _, page = page_of(out)
    words = [attributes["aria-label"] for tag, attributes in page.tags if tag == "svg" and "aria-label" in attributes]
    assert any(word and word.startswith("price in train: ") for word in words)
    assert all(
        attributes.get("role") == "img" or "aria-hidden" in attributes for tag, attributes in page.tags if tag == "svg"
    )


def test_duplicates_and_leaks_are_those_of_the_manifest(page_of: PageOf, out: Path) -> None:
    text, _ = page_of(out)
    checks = read_manifest(str(out)).details.checks
    assert f"<p>{checks['leaks']['groups']:,} values in several splits" in text
    assert f"{checks['duplicates']['records']:,} records repeat an earlier one" in text


def test_the_settings_that_a_report_without_checks_names_work_as_they_are(
    page_of: PageOf, tmp_path: Path, shardmill: Shardmill
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n2,a\n")
    assert shardmill("convert", "a.csv", "-o", "out").code == 0
    text, _ = page_of(tmp_path / "out")
    settings = re.search(r"a conversion with <code>([^<]*)</code>", text)
    assert settings is not None
    words = shlex.split(html.unescape(settings[1]).replace("NAME", "text"))
    result = shardmill("convert", "a.csv", "-o", "checked", "--set", "split.fractions={train: 0.5, val: 0.5}", *words)
    assert result.code == 0, result.err
    assert read_manifest(str(tmp_path / "checked")).details.checks.keys() == {"duplicates", "leaks"}


def test_the_page_asks_no_network_and_runs_no_script(page_of: PageOf, out: Path) -> None:
    text, page = page_of(out)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert all((attributes["src"] or "").startswith("data:image/") for tag, attributes in page.tags if tag == "img")
    assert "default-src 'none'" in text


def test_names_and_values_of_data_are_no_markup(page_of: PageOf, out: Path) -> None:
    text, page = page_of(out)
    assert "<script" not in text
    assert "alert(&#34;1&#34;)" in text
    assert "\x07" not in text
    assert ("b", {}) not in page.tags


def luminance(color: str) -> float:
    """Return how light a colour is (WCAG 2.2)."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_words_and_charts_stand_out_from_what_is_behind_them(colors: Mapping[str, str]) -> None:
    for behind in ("page", "card"):
        assert all(contrast(colors[name], colors[behind]) >= 4.5 for name in ("text", "quiet", "link"))
        assert all(contrast(colors[name], colors[behind]) >= 3 for name in ("bar", "mark"))


def test_the_page_is_used_with_a_keyboard_and_a_screen_reader(page_of: PageOf, out: Path) -> None:
    text, page = page_of(out)
    anchors = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a"]
    assert links[0] == "#content"
    assert {link.removeprefix("#") for link in links} <= anchors
    for tag, attributes in page.tags:
        if attributes.get("class") == "scroll":
            assert (attributes["tabindex"], attributes["role"]) == ("0", "region")
            assert attributes["aria-label"]
        if tag == "img":
            assert attributes["alt"]
    assert all(name for head, *_ in page.tables.values() for name in head)
    assert page.headings[0] == "h1"
    levels = [int(heading[1]) for heading in page.headings]
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert '<html lang="en">' in text
    assert ":focus-visible" in text


def test_a_thousand_columns_take_two_megabytes_at_most(page_of: PageOf, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    columns = {f"column_number_{i:04d}": random.random(200).astype(np.float32) for i in range(1000)}
    split = {"fractions": {"train": 0.8, "val": 0.1, "test": 0.1}}
    convert(data=pa.table({n: pa.array(v) for n, v in columns.items()}), output=tmp_path / "out", split=split)
    text, page = page_of(tmp_path / "out")
    assert len(columns) > MOST_CARDS
    assert len(text.encode()) < 2_000_000
    head, *rows = page.tables["Figures of all features by split"]
    assert len(rows) == 3000
    values = dict(zip(head, rows[0], strict=True))
    assert values["feature"] == "column_number_0000"
    assert 0 < float(values["mean"]) < 1


def test_the_foot_of_the_page_names_every_figure_that_is_not_exact(page_of: PageOf, tmp_path: Path) -> None:
    names = ["x0" if i % 2 else f"x{i // 2}" for i in range(30_000)]
    convert(data={"name": names}, output=tmp_path / "out", stats=True)
    text, page = page_of(tmp_path / "out")
    assert dict(rows_by_split(page, "name"))["train"]["distinct"].startswith("about ")
    assert "<span>about " in text
    foot = text.partition("<footer>")[2]
    assert "quantiles and histograms of over 1,024 records, which are of a sample" in foot
    assert "distinct values and the counts of frequent ones where over 10,000 values are different" in foot


def test_pictures_have_their_boxes_and_words(page_of: PageOf, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    convert(root / "configs/boxes.yaml", output=tmp_path / "out")
    text, page = page_of(tmp_path / "out")
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(pictures) == 5
    data = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', text)
    import base64

    assert {Image.open(io.BytesIO(base64.b64decode(one))).size for one in data} == {(160, 100)}
    boxes = [attributes for tag, attributes in page.tags if tag == "rect"]
    assert len(boxes) == 10
    assert all(0 <= float(box["x"] or "") <= 160 for box in boxes)
    assert "potted plant</text>" in text
    assert "a street with" in text
    balance = page.tables["Classes of image/object/class/text by split"]
    names = [name for row in open_dataset(tmp_path / "out")["train"] for name in row["image/object/class/text"] or []]
    counts = sorted(Counter(names).items(), key=lambda one: (-one[1], one[0]))
    assert [(row[0], int(row[1])) for row in balance[1:]] == counts


def test_classes_of_boxes_that_are_rare_in_one_split_have_no_count_there() -> None:
    def figures(top: dict[str, int], distinct: int) -> FeatureFigures:
        values = [ValueCount(name, count) for name, count in top.items()]
        more = {"distinct": Distinct(distinct, exact=True), "top": tuple(values)}
        return FeatureFigures("x/object/class/text", "bytes", "string", 9, 1, 100, **more)  # type: ignore[arg-type]

    splits = {"train": figures({"cat": 60, "dog": 30}, 25), "val": figures({"cat": 99, "owl": 1}, 2)}
    found = {name: SplitFigures(name, 10, {one.name: one}) for name, one in splits.items()}
    (balance,) = class_balance(Statistics("full", found))
    assert [(row[0], row[1], row[3]) for row in balance.table.rows] == [
        ("cat", "60", "99"), ("dog", "30", "0"), ("owl", "-", "1"),
    ]  # fmt: skip
    assert (balance.left, balance.missing) == (22, "1 record of train, 1 record of val")


def test_rejected_rows_have_their_place_their_value_and_the_fix(
    page_of: PageOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"{i},{i / 2}\n" for i in range(2000))
    Path("a.csv").write_text(f"id,price\n{lines}x,<b>7\n")
    convert(
        "a.csv",
        output="out",
        max_rejects=1,
        schema={"columns": {"id": {"type": "int64"}, "price": {"type": "float32"}}},
    )
    text, page = page_of(Path("out"))
    assert '<a href="#rejects">1 row rejected</a>: BAD_TYPE 1</p></header>' in text
    _, *rows = page.tables["Rejected rows by their code, with examples"]
    assert [row[:5] for row in rows] == [
        ["BAD_TYPE", "1", "a.csv, row 2001", "id", "x"],
        ["BAD_TYPE", "1", "a.csv, row 2001", "price", "<b>7"],
    ]
    assert "--set schema.columns" in rows[0][5]


def test_the_generations_are_there_and_older_ones_can_be_asked_for(page_of: PageOf, tmp_path: Path) -> None:
    convert(data={"n": [1, 2]}, output=tmp_path / "out")
    append(data={"n": [3]}, output=str(tmp_path / "out"))
    _, page = page_of(tmp_path / "out")
    _, *rows = page.tables["The generations of the dataset, the latest first"]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [("2", "append", "1", "3"), ("1", "create", "2", "2")]
    _, older = page_of(tmp_path / "out", "--generation", "1")
    assert plain(dict(rows_by_split(older, "n"))["train"]["present"]) == 2


def test_a_quick_report_reads_no_record(shardmill: Shardmill, page_of: PageOf, out: Path, tmp_path: Path) -> None:
    convert(data={"n": [1, 2]}, output=tmp_path / "out", stats=False)
    (shard,) = (tmp_path / "out").glob("*.tfrecord")
    shard.write_bytes(b"")
    _, page = page_of(tmp_path / "out", "--quick")
    assert not [caption for caption in page.tables if caption.startswith("Figures")]
    result = shardmill("report", str(tmp_path / "out"), "-o", str(tmp_path / "b.html"))
    assert result.code != 0
    assert not (tmp_path / "b.html").exists()


def test_plain_bytes_have_a_report_without_features(page_of: PageOf, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("a\n")
    convert(data={"n": [1]}, output=tmp_path / "out")
    text, _ = page_of(tmp_path / "out")
    assert "Lineage" in text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("report.pdf", "a report is an HTML file; name it so: -o report.html"),
        ("there.html", "already exists; --overwrite replaces it"),
        ("s3://bucket/report.html", "copy it to the store"),
    ],
)
def test_a_target_that_cannot_be_is_refused_with_the_fix(
    shardmill: Shardmill, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.html").write_text("mine")
    result = shardmill("report", str(out), "-o", target)
    assert result.code == 2
    assert said in result.err
    assert Path("there.html").read_text() == "mine"


def test_of_adopted_files_no_size_was_asked_for(tmp_path: Path, shardmill: Shardmill, page_of: PageOf) -> None:
    convert(data={"n": [1, 2]}, output=tmp_path / "out")
    (tmp_path / "theirs").mkdir()
    (shard,) = (tmp_path / "out").glob("*.tfrecord")
    (tmp_path / "theirs/a.tfrecord").write_bytes(shard.read_bytes())
    assert shardmill("adopt", str(tmp_path / "theirs")).code == 0
    text, _ = page_of(tmp_path / "theirs")
    assert "no size was asked for" in text
    assert "asked for: " not in text
    assert "class=target" not in text
