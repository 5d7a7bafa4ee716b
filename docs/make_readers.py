"""Make the programs of docs/readers: what `shardmill snippet` prints for the dataset of `configs/quickstart.yaml`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from shardmill.pipelines import convert
from shardmill.transforms.format.sidecars.programs import READERS, Subject, program

CONFIG = Path(__file__).parent.parent / "configs/quickstart.yaml"


def reader_programs() -> dict[str, str]:
    """Return the programs by the names of their tables, in a fence of Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = convert(CONFIG, output=Path(folder) / "quickstart").manifest
    subject = Subject.of("out/quickstart", manifest, None, ("image/encoded",))
    return {f"reader {name}": f"```python\n{program(name, subject)}```" for name in READERS}
