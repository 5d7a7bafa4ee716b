"""Words that people write for null, true and false: they are proposed, and never taken unless they are declared."""

from __future__ import annotations

from typing import Final

_NULLS: Final = frozenset((
    "", "-", "--", ".", "?", "??", "na", "n/a", "n.a.", "n.a", "#n/a", "nan", "null", "nil", "none", "missing",
    "unknown", "(null)", "<na>", "<null>", "\\n",
))  # fmt: skip
"""Words, in lowercase, that mostly mean null: also where they are many."""

_BOOLS: Final = (
    ("yes", "no"), ("y", "n"), ("t", "f"), ("true", "false"), ("1", "0"), ("on", "off"), ("ja", "nein"), ("j", "n"),
    ("oui", "non"), ("o", "n"), ("sí", "no"), ("si", "no"), ("s", "n"), ("sim", "não"), ("da", "ne"), ("ja", "nee"),
    ("wahr", "falsch"), ("vrai", "faux"), ("да", "нет"), ("tak", "nie"), ("はい", "いいえ"), ("是", "否"),
)  # fmt: skip
"""What means true and false, in lowercase."""


def means_null(word: str) -> bool:
    return word.lower() in _NULLS


def bool_words(words: list[str]) -> tuple[list[str], list[str]] | None:
    """Return which of some words are true, and which are false; None where they are not all of one such pair.

    A word alone is given the other one of its pair.

    >>> bool_words(["Y", "no", "N"]), bool_words(["ja", "Nein"]), bool_words(["NO"]), bool_words(["maybe"])
    ((['Y'], ['no', 'N']), (['ja'], ['Nein']), (['YES'], ['NO']), None)
    """
    pairs = [pair for pair in _BOOLS if any(word.lower() in pair for word in words)]
    trues, falses = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    known = [[word for word in words if word.lower() in side] for side in (trues, falses)]
    if not words or sum(map(len, known)) != len(words) or trues & falses:
        return None
    if not all(known):
        yes, no = pairs[0]
        other, like = (yes, known[1][0]) if not known[0] else (no, known[0][0])
        same = other.upper() if like.isupper() else other.capitalize() if like.istitle() else other
        known = [known[0] or [same], known[1] or [same]]
    return known[0], known[1]
