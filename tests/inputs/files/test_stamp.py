"""An input that is not there when it is read: deleted since, or never on this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from shardmill.transforms.errors import SourceError
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.read import pick_source


def test_the_error_of_a_missing_file_names_its_folder_the_machine_and_both_reasons(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("a\n1\n")
    source = pick_source(["in/a.csv"], str(tmp_path))
    found = source.survey(source.list_files(), map_in_turn)
    (tmp_path / "in").rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError) as raised:
        list(source.read(Task(0, found.pieces), found.frozen))
    assert str(raised.value) == (
        f"in/a.csv: cannot be read any more: No such file or directory (on {socket.gethostname()}). Either it was "
        f"deleted after it was listed, or only the launching machine has {tmp_path}/in; put that where all workers "
        f"have it under the same path, or run again"
    )


@pytest.mark.parametrize("mounted", [False, True], ids=["missing", "empty"])
def test_a_root_of_images_that_is_not_there_is_one_error_and_no_reject_for_each_image(
    tmp_path: Path, mounted: bool
) -> None:
    pets = Path(__file__).parents[3] / "configs/samples/pets"
    (tmp_path / "in").symlink_to(pets)
    source = pick_source(["in"], str(tmp_path))
    found = source.survey(source.list_files(), map_in_turn)
    (tmp_path / "in").unlink()
    if mounted:
        (tmp_path / "in").mkdir()
    with pytest.raises(SourceError, match=rf"only the launching machine has {tmp_path}/in; put that where all workers"):
        list(source.read(Task(0, found.pieces), found.frozen))
