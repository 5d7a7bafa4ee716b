"""The order in which protobuf's deterministic mode writes the keys of a map."""

from __future__ import annotations


def map_key_order(name: str) -> tuple[int, ...]:
    """Return what the features of a record are sorted by.

    Keys are in the order of their UTF-8 bytes, but one that another begins with comes after it: upb, which is what
    protobuf's Python package runs on, negates the comparison of the bytes and not that of the lengths
    (`_upb_mapsorter_cmpstr` in upb/message/map_sorter.c). Records are byte-equal to what it writes.

    >>> sorted(["z", "f1", "f10", "f2", ""], key=map_key_order)
    ['f10', 'f1', 'f2', 'z', '']
    """
    return (*name.encode(), 256)  # the end of a key is above every byte
