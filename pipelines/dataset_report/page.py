"""The whole page: one file, which asks no network and runs no script; light and dark as the reader's system is."""

from __future__ import annotations

from typing import Final

from ...transforms.format.wording.printable import counted
from ...transforms.format.wording.sizes import format_size
from .facts import ReportFacts
from .features import features_section
from .markup import text_of
from .overview import classes_section, differences_section, lineage_section, shards_section, splits_section
from .records import checks_section, pictures_section, rejects_section

LIGHT: Final = {
    "page": "#ffffff", "text": "#1a1c1e", "quiet": "#55606b", "line": "#c9d1d9", "link": "#0b5cad",
    "bar": "#3b78c2", "mark": "#b3261e", "card": "#f5f7f9",
}  # fmt: skip
DARK: Final = {
    "page": "#14171a", "text": "#e6e9ec", "quiet": "#a9b4be", "line": "#454f59", "link": "#8fc1ff",
    "bar": "#6aa5e8", "mark": "#ff8a80", "card": "#1d2226",
}  # fmt: skip
"""The colours, by what they are for: tests check their contrast."""

_POLICY: Final = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

_STYLE: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}
header,main,nav,footer{max-width:70rem;margin:0 auto;padding:0 1rem}
h1{margin:1.5rem 0 .25rem;overflow-wrap:anywhere}
h2{margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{margin:1.25rem 0 .25rem;overflow-wrap:anywhere}
h4{margin:.5rem 0 0;font-size:.9rem;color:var(--quiet)}
small,figcaption,caption,footer,dt{color:var(--quiet);font-weight:400}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--page);padding:.5rem}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;padding:0;list-style:none}
nav a{display:inline-block;padding:.25rem 0}
.scroll{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.9rem}
caption{text-align:left;padding-bottom:.25rem}
th,td{padding:.2rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
thead th{white-space:nowrap}
tbody th{font-weight:500}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bar{display:inline-block;width:6rem;height:.7rem;margin-left:.4rem;background:var(--card)}
.bar i{display:block;height:100%;background:var(--bar)}
article{background:var(--card);padding:.25rem 1rem .75rem;margin:1rem 0;border-radius:.5rem}
.charts{display:flex;flex-wrap:wrap;gap:.5rem 2rem}
.charts>div{flex:1 1 15rem;min-width:0;max-width:19rem}
.charts p{margin:.5rem 0;font-size:.9rem}
.charts ol{margin:.25rem 0;padding-left:1.7rem;font-size:.9rem;overflow-wrap:anywhere}
.charts li span{color:var(--quiet)}
figure{margin:.25rem 0}
figure svg{width:15rem;max-width:100%;display:block;fill:var(--bar)}
figure.wide svg,figure.wide figcaption{width:30rem;max-width:100%}
figcaption{display:flex;justify-content:space-between;max-width:15rem;font-size:.8rem}
.target{stroke:var(--mark);stroke-width:2}
.pictures{display:flex;flex-wrap:wrap;gap:1rem}
.pictures figcaption{display:block;overflow-wrap:anywhere}
.picture{position:relative}
.picture img{display:block;max-width:100%;height:auto}
.picture svg{position:absolute;inset:0;width:100%;height:100%;fill:none}
.picture rect{stroke:#ff3;stroke-width:1.5;paint-order:stroke}
.picture text{font:600 10px sans-serif;fill:#ff3;stroke:#000;stroke-width:2.5;paint-order:stroke}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;overflow-wrap:anywhere}
dd{margin:0;min-width:0}
"""


def html_page(facts: ReportFacts) -> str:
    """Return the report as one HTML document."""
    manifest = facts.manifest
    records = sum(split.records for split in manifest.splits.values())
    size = sum(split.bytes for split in manifest.splits.values())
    title = text_of(manifest.name)
    parts = [
        splits_section(facts),
        shards_section(facts),
        classes_section(facts),
        differences_section(facts),
        pictures_section(facts),
        features_section(facts.statistics, manifest.schema),
        rejects_section(facts),
        checks_section(facts),
        lineage_section(facts),
    ]
    shown = [part for part in parts if part]
    links = "".join(f'<li><a href="#{_name(part)}">{_title(part)}</a></li>' for part in shown)
    summary = (
        f"{counted(records, 'record')} in {counted(sum(len(s.shards) for s in manifest.splits.values()), 'shard')}, "
        f"{format_size(size)}; generation {manifest.generation} of {text_of(manifest.run.created)}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{title}: report</title><style>{_colors()}{_STYLE}</style></head>"
        f'<body><a class=skip href="#content">Skip to the content</a><header><h1>{title}</h1><p>{summary}</p></header>'
        f'<nav aria-label="Parts of the report"><ul>{links}</ul></nav>'
        f'<main id="content">{"".join(shown)}</main>'
        "<footer><p>Made by <code>shardmill report</code>. Figures are exact, except for quantiles and histograms of "
        "over 1,024 records, which are of a sample, and the number of distinct values and the counts of frequent ones "
        "where over 10,000 values are different, which are estimated. Digits that are not shown are in "
        "<code>data</code> elements.</p>"
        "</footer></body></html>\n"
    )


def _name(part: str) -> str:
    return part.partition('id="')[2].partition('"')[0]


def _title(part: str) -> str:
    return part.partition("<h2")[2].partition(">")[2].partition("</h2>")[0]


def _colors() -> str:
    light, dark = (";".join(f"--{name}:{color}" for name, color in colors.items()) for colors in (LIGHT, DARK))
    return f":root{{color-scheme:light dark;{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
