from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import InputError

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def repository(*files: str, configs: str) -> None:
    """Write a repository `r` whose README.md has the configs, and its CSV files of one row."""
    for number, name in enumerate(files):
        (path := Path("r", name)).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"n\n{number}\n")
    Path("r/README.md").write_text(f"---\nlicense: mit\nconfigs:\n{configs}---\n\n# Text\n")


def records(path: str = "out") -> dict[str, int]:
    dataset = open_dataset(path)
    return {name: len(dataset[name]) for name in dataset.splits}


ONE = "- config_name: default\n  data_files:\n"


def of(*stated: str) -> str:
    """Return one config, whose splits are given each as `train: path`."""
    pairs = (one.split(": ", 1) for one in stated)
    return ONE + "".join(f"  - {{split: {split}, path: {path}}}\n" for split, path in pairs)


@pytest.mark.parametrize(
    ("files", "configs", "splits"),
    [
        (["data/a-1.csv", "data/b-1.csv"], of("train: data/a-*", "test: data/b-*"), {"train": 1, "test": 1}),
        (["a.csv", "b.csv", "c.csv"], of("train: [a.csv, c.csv]", "test: ./b.csv"), {"train": 2, "test": 1}),
        (["a/x.csv", "b/c/x.csv"], of("train: a/*.csv", "Validation: b/**"), {"train": 1, "validation": 1}),
        (["a.csv", "b.csv"], ONE + "    train: a.csv\n    test: [b.csv]\n", {"train": 1, "test": 1}),
        (["x/a.csv", "x/b.csv"], of("dev: a.csv", "test: b.csv") + "  data_dir: x\n", {"dev": 1, "test": 1}),
        (["only.csv"], "- data_files: only.csv\n", {"train": 1}),
        (["train.csv", "test.csv"], of("train: train.csv", "test: test.csv"), {"train": 1, "test": 1}),
        (["p/1.csv", "p/2.csv", "q/1.csv"], of("a_few: 'p/[12].csv'", "rest: q"), {"a_few": 2, "rest": 1}),
    ],
)
def test_the_splits_that_a_readme_states_are_read(
    files: list[str], configs: str, splits: dict[str, int], shardmill: Shardmill
) -> None:
    repository(*files, configs=configs)
    screen = shardmill("convert", "r", "-o", "out")
    assert (screen.code, records()) == (0, splits), screen.err
    assert re.search(r"Detected: (splits|all files are of split) .*, from README\.md; to read all files as", screen.out)
    assert "\nLeft out: 1 .md\n" in screen.out


def test_what_a_readme_states_comes_before_names_and_after_what_the_user_says(shardmill: Shardmill) -> None:
    configs = ONE + "  - {split: train, path: test/a.csv}\n  - {split: test, path: train/b.csv}\n"
    repository("test/a.csv", "train/b.csv", configs=configs)
    convert("r", output="out")
    assert open_dataset("out")["train"].to_pandas()["n"].tolist() == [0]
    for number, (options, splits) in enumerate([
        (["--set", "input.splits=none"], {"train": 2}),
        (["--set", "input.splits={train: 'train/*', val: 'test/*'}"], {"train": 1, "val": 1}),
        (["--split", "dev"], {"dev": 2}),
        (["--set", "input.detect=none"], {"train": 2}),
    ]):  # fmt: skip
        assert shardmill("convert", "r", "-o", f"o{number}", *options).code == 0
        assert records(f"o{number}") == splits


def test_an_append_reads_the_readme_of_its_own_files() -> None:
    configs = ONE + "  - {split: train, path: 'a-*'}\n  - {split: test, path: 'b-*'}\n"
    repository("a-1.csv", "b-1.csv", configs=configs)
    convert("r", output="out")
    Path("r/b-2.csv").write_text("n\n7\n")
    append("r", output="out")
    assert records() == {"train": 1, "test": 2}


def followed(text: str) -> list[list[str]]:
    return [shlex.split(command) for command in re.findall(r"^  .*?: +shardmill (.*)$", text, re.M)]


def test_several_configs_are_asked_for_with_commands_that_run(shardmill: Shardmill) -> None:
    configs = (
        "".join(
            f"- config_name: {name}\n  data_files:\n  - {{split: train, path: {name}/a*.csv}}\n"
            f"  - {{split: test, path: {name}/b.csv}}\n"
            for name in ("de", "fr")
        )
        + "- config_name: all\n  data_files: '*/a*.csv'\n"
    )
    repository("de/a1.csv", "de/a2.csv", "de/b.csv", "fr/a1.csv", "fr/b.csv", configs=configs)
    screen = shardmill("convert", "r", "-o", "out")
    assert (screen.code, "README.md states 3 configs (de, fr, all); choose one of" in screen.err) == (2, True)
    found = []
    for number, args in enumerate(followed(screen.err)):
        args[args.index("-o") + 1] = f"o{number}"
        assert shardmill(*args).code == 0
        found.append(records(f"o{number}"))
    assert found == [{"train": 2, "test": 1}, {"train": 1, "test": 1}, {"train": 3}]
    assert shardmill("convert", "r", "-o", "out", "--set", "input.splits=none").code == 0
    convert("r/de", output="one", input__splits="none")  # a folder of one config is read as any other


def test_a_file_that_a_readme_does_not_name_stops_the_run_with_two_commands(shardmill: Shardmill) -> None:
    repository("a.csv", "b.csv", "more.csv",
               configs=ONE + "  - {split: train, path: a.csv}\n  - {split: test, path: b.csv}\n")  # fmt: skip
    screen = shardmill("convert", "r", "-o", "out")
    assert "README.md states the splits of some files, and not of r/more.csv; choose one of" in screen.err
    found = []
    for number, args in enumerate(followed(screen.err)):
        args[args.index("-o") + 1] = f"o{number}"
        assert shardmill(*args).code == 0
        found.append(records(f"o{number}"))
    assert found == [{"train": 1, "test": 1}, {"train": 3}]


@pytest.mark.parametrize(
    "readme",
    [
        "# no front matter\n",
        "---\nconfigs: [\n---\n",
        "---\nconfigs: text\n---\n",
        "---\nconfigs:\n- {config_name: x}\n---\n",
        "---\nconfigs:\n- data_files: 7\n---\n",
        "---\nconfigs:\n- data_files: https://example.org/a.csv\n---\n",
        "---\nconfigs:\n- data_files: gone-*.csv\n---\n",
        "---\n" + "x: [" * 2000 + "\n---\n",
    ],
)
def test_a_readme_that_states_no_file_says_nothing(readme: str) -> None:
    repository("a.csv", configs="")
    Path("r/README.md").write_text(readme)
    convert("r", output="out")
    assert records() == {"train": 1}


def test_a_split_whose_name_is_none_is_refused_with_what_to_do() -> None:
    repository("a.csv", configs=ONE + "  - {split: 2010s, path: a.csv}\n")
    with pytest.raises(InputError, match=r'r/README\.md: calls a split "2010s".*input\.splits=\{train: GLOB'):
        convert("r", output="out")


def test_folders_of_pictures_have_the_splits_that_a_readme_states(shardmill: Shardmill) -> None:
    for folder in ("one/cat", "one/dog", "two/cat"):
        Path("r", folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"r/{folder}/1.png")
    Path("r/README.md").write_text(
        f"---\nconfigs:\n{ONE}  - {{split: train, path: one/**}}\n  - {{split: test, path: 'two/**'}}\n---\n"
    )
    screen = shardmill("convert", "r", "-o", "out")
    assert (screen.code, records()) == (0, {"train": 2, "test": 1}), screen.err
    assert open_dataset("out")["test"].to_pandas()["image/class/text"].tolist() == ["cat"]


INFO = """  features:
  - name: n
    dtype: int64
  - name: kind
    dtype:
      class_label:
        names:
          '0': neg
          '1': pos
"""


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_the_classes_that_a_readme_names_are_those_of_the_numbers_of_a_column(form: str) -> None:
    Path("r").mkdir()
    table = pa.table({"n": [1, 2, 3], "kind": [1, 0, -1]})
    write = {
        "csv": table.to_pandas().to_csv,
        "jsonl": table.to_pandas().to_json,
        "parquet": table.to_pandas().to_parquet,
    }
    more = {"jsonl": {"orient": "records", "lines": True}, "csv": {"index": False}, "parquet": {}}[form]
    write[form](f"r/a.{form}", **more)
    Path("r/README.md").write_text(f"---\ndataset_info:\n{INFO}---\n")
    convert("r", output="out")
    dataset = open_dataset("out")
    assert dataset.labels == {"kind": ("neg", "pos")}
    assert dataset.to_arrow("train").to_pydict() == {"kind": ["pos", "neg", None], "n": [1, 2, 3]}
    Path("r/README.md").write_text(f"---\ndataset_info:\n{INFO.replace('neg', 'new').replace('pos', 'neg')}---\n")
    append("r", output="out", force=True)
    assert open_dataset("out").labels == {"kind": ("neg", "pos", "new")}
    assert open_dataset("out").to_arrow("train")["kind"].to_pylist()[3:] == ["neg", "new", None]
    convert("r", output="off", input__detect="none")
    assert open_dataset("off").labels == {}


@pytest.mark.parametrize(
    ("info", "labels"),
    [
        (f"- config_name: x\n{INFO}", {"kind": ("neg", "pos")}),
        (f"- config_name: a\n{INFO}- config_name: default\n{INFO.replace('neg', 'new')}", {"kind": ("new", "pos")}),
        (f"- config_name: a\n{INFO}- config_name: b\n{INFO}", {}),
        ("  features: text\n", {}),
        ("  features: [{name: kind, dtype: {class_label: {names: {'0': a, '2': b}}}}]\n", {}),
        ("  features: [{name: kind, dtype: {class_label: {names: [a, b]}}}, 7, {name: 7}]\n", {"kind": ("a", "b")}),
        ("  features: [{name: kind, list: {class_label: {names: {'0': a, '1': b}}}}]\n", {"kind": ("a", "b")}),
        ("  features: [{name: gone, dtype: {class_label: {names: [a]}}}]\n", {}),
        ("  features: [{name: kind, dtype: {class_label: 7}}]\n", {}),
        ("7\n", {}),
    ],
)
def test_of_several_configs_the_classes_are_those_of_the_one_that_is_read(
    info: str, labels: dict[str, tuple[str, ...]]
) -> None:
    repository("a.csv", configs=of("train: a.csv"))
    Path("r/a.csv").write_text("n,kind\n0,1\n")
    text = Path("r/README.md").read_text().replace("license: mit\n", f"dataset_info:\n{info}")
    Path("r/README.md").write_text(text)
    convert("r", output="out")
    assert open_dataset("out").labels == labels
