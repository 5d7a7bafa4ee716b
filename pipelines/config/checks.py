"""Values of the config that take several forms: what they may be, and what they are read as."""

from __future__ import annotations

from ...transforms.format.wording.printable import quoted


def check_null(value: object) -> object:
    """Return what becomes of nulls: a word, or `{fill: VALUE}`.

    Raises:
        ValueError: it is neither.
    """
    words = ("absent", "drop_row", "error", "mask")
    if value in words or (isinstance(value, dict) and list(value) == ["fill"] and value["fill"] is not None):
        return value
    raise ValueError(f"{quoted(value)} is none of {', '.join(words)}, and not {{fill: VALUE}}")


def check_label(value: object) -> bool | list[str]:
    """Return whether a column is a label, or its classes.

    Raises:
        ValueError: it is neither, or two classes have one name.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not value:
        raise ValueError(f"{quoted(value)} is neither true nor a list of classes, like [cat, dog]")
    for name in value:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(f'{quoted(name)} is no name of a class; put it in quotes: ["no", "yes"]')
    names = [str(name) for name in value]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{quoted(twice)} appears twice")
    return names
