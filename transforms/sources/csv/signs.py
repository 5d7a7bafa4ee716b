"""Check that the signs of CSV files go together."""

from __future__ import annotations

from collections.abc import Sequence

from ...format.wording.printable import quoted


def wrong_signs(
    delimiter: str,
    quote: str | None,
    escape: str | None,
    comment: str | None,
    null_values: Sequence[str],
    trim: bool,  # noqa: FBT001 - all are keys of the config
) -> str | None:
    """Return why records cannot be read by these signs, None if they can."""
    signs = {"delimiter": delimiter, "quote": quote, "escape": escape, "comment": comment}
    seen: dict[str, str] = {}
    for key, sign in signs.items():
        if sign is not None and sign in seen:
            return f"{seen[sign]} and {key} are both {quoted(sign)}; they must differ"
        if sign is not None:
            seen[sign] = key
        if trim and key != "delimiter" and sign is not None and sign in " \t":
            return f"{key} is a blank, and trim takes blanks away; leave one of them out"
    if escape is not None and comment is not None:
        return "escape and comment do not go together: an escape at the end of a comment may or may not belong to it"
    for word in null_values:
        if escape is not None and escape in word:
            return (
                f"null_values: {quoted(word)} holds the escape {quoted(escape)}, which is taken out of cells before; "
                f"name the word without it ({quoted(word.replace(escape, ''))}), or leave the escape out"
            )
    return None
