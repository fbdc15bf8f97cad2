"""Write the page of the benchmarks from what was measured: a table and a plot for each part."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pygal
from pygal.style import CleanStyle

from benchmarks.report import figure

# pygal leaves behind an importer of its own that Python no longer knows how to ask, and warns of.
sys.meta_path[:] = [each for each in sys.meta_path if type(each).__module__ != "pygal"]

DOCS = Path(__file__).resolve().parent.parent / "docs"
PLOTS = Path("images") / "benchmarks"
BY_HAND = ("memory", "dagster_idle")
"""What takes too long for `make bench`."""
_TARGET = re.compile(r"(>=|<|)\s*([\d.]+)(?: %)?")
_DATED = re.compile(r"<!--.*?-->|(?<= id=\")[^\"]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Row = Mapping[str, Any]


class Part(NamedTuple):
    """What one benchmark is for, and which of its figures are drawn."""

    title: str
    about: str
    unit: str
    drawn: Callable[[Row], bool] = lambda _: True


_PARTS = {
    "stash": Part(
        "Stash",
        "What `stash` adds to the same INSERT or COPY written by hand, in one process.",
        "/s",
    ),
    "paths": Part(
        "Ways to stash",
        "Each way against psycopg's, in one process: one message after the other, 20 a transaction,"
        " and many in one transaction. `harvest stash` reads JSON lines, and is a process of its"
        " own that starts meanwhile.",
        "/s",
    ),
    "harvest": Part(
        "Harvest a backlog",
        "From the first mark to the last purge: 100 bytes and one header a message, 1,000 keys. The"
        " plain loops select, produce and delete, and guarantee nothing: when one of them dies,"
        " messages are lost or doubled.",
        "/s",
        lambda row: not row["name"].startswith("raw "),
    ),
    "growth": Part(
        "Growth",
        "The same in `exactly_once`, by the size of the backlog, and with a snapshot held all the"
        " while that keeps every dead row from being vacuumed. Mark time is what it takes to read"
        " the next records and write their claim.",
        "/s",
    ),
    "sizes": Part("Sizes", "The same by the size of the message.", "MB/s"),
    "latency": Part(
        "Latency",
        "1,000 commits a second of one message each; from the return of COMMIT to a"
        " `read_committed` consumer. Writer, harvest and consumer are processes of this machine."
        " A bare transaction is what Kafka takes by itself: a producer that has each message"
        " the moment it is due, and commits what there is.",
        "%",
        lambda row: " ms" in row["name"],
    ),
    "shards": Part(
        "Shards",
        "Several leaders, each in a process of its own, share the keys of one outbox; from the"
        " commit of the backlog to the empty table. More leaders than cores only take turns.",
        "/s",
    ),
    "tour": Part("In Dagster", "The same harvest in the process of a run of Dagster.", "/s"),
    "spark": Part(
        "Spark",
        "A DataFrame into the outbox over two connections. Raw COPY sends bytes that are encoded"
        " beforehand, and like JDBC it leaves half of them behind when it fails. Each has written a"
        " million four times before it is measured: until then the JVM compiles what it runs.",
        "/s",
    ),
    "memory": Part(
        "Memory",
        "A harvest in a process of its own under steady load, and what it holds at the end of each"
        " minute. It takes longer than all the rest, and is measured by hand: `python -m benchmarks"
        " --only memory`.",
        "MB",
    ),
    "dagster_idle": Part(
        "What Dagster costs",
        "The sensor's tick, beside an empty outbox and right after a backlog was drained; and what"
        " a Dagster burns and writes at rest and with orders coming in. Measured by hand:"
        " `python -m benchmarks --only dagster_idle`.",
        "ms",
    ),
}
_HEAD = """# Benchmarks

`make bench` measures all of this that is not measured by hand, in {minutes:.0f} minutes, and writes
this page. Contenders take turns, and each figure is the median of so many runs as its row tells:
read the ratios, since the absolute figures are those of this machine on that day. What is **bold**
misses its target; a moonshot is what would be better still. [The raw figures](benchmarks.json) have
each run's, and what each part was run with. [Where the time goes](explanation/speed.md) is another
page.
"""


def write(raw: Path) -> None:
    """Write the page and its plots."""
    found = json.loads(raw.read_text(encoding="utf-8"))
    folder = DOCS / PLOTS
    folder.mkdir(parents=True, exist_ok=True)
    for name in _there(found):
        (folder / f"{name}.svg").write_text(plot(name, found[name]["results"]), encoding="utf-8")
    (DOCS / "benchmarks.md").write_text(text(found), encoding="utf-8")


def text(found: Mapping[str, Any]) -> str:
    """Write the page."""
    here = _machine(found)["machine"]
    parts = [line for name in _there(found) for line in _section(name, found[name], here)]
    seconds = sum(part["took seconds"] for name, part in found.items() if name not in BY_HAND)
    return "\n".join([_HEAD.format(minutes=seconds / 60), *_told(_machine(found)), *parts])


def plot(name: str, rows: Sequence[Row]) -> str:
    """Draw the figures of a part as bars."""
    part = _PARTS[name]
    drawn = [row for row in rows if row["unit"] == part.unit and part.drawn(row)]
    drawn = [row for row in drawn if row["value"] is not None]
    chart = pygal.HorizontalBar(
        js=(),
        disable_xml_declaration=True,
        title=f"{part.title}, {part.unit}",
        style=CleanStyle(font_family="sans-serif", value_font_size=12, label_font_size=12),
        width=900,
        height=90 + 32 * len(drawn),
        show_legend=False,
        print_values=True,
        value_formatter=figure,
        truncate_label=-1,
        margin_right=60,
    )
    chart.x_labels = [row["name"] for row in reversed(drawn)]
    chart.add(part.title, [row["value"] for row in reversed(drawn)])
    return _DATED.sub("", chart.render()) + "\n"


def _there(found: Mapping[str, Any]) -> list[str]:
    return [name for name in _PARTS if name in found]


def _machine(found: Mapping[str, Any]) -> Mapping[str, str]:
    machine: Mapping[str, str] = next(iter(found.values()))["machine"]
    return machine


def _told(machine: Mapping[str, str]) -> Iterator[str]:
    yield "| | |\n|---|---|"
    yield from (f"| {name} | {value} |" for name, value in machine.items())
    yield ""


def _section(name: str, measured: Mapping[str, Any], here: str) -> Iterator[str]:
    part = _PARTS[name]
    yield f"## {part.title}\n\n{part.about}\n"
    yield f"![{part.title}: the figures of the table as bars]({PLOTS.as_posix()}/{name}.svg)\n"
    yield "| | ratio | to | target | figure | runs |\n|---|---|---|---|---|---|"
    yield from map(_row, measured["results"])
    command = f"python -m benchmarks.{name} {measured['settings']}"
    machine = measured["machine"]["machine"]
    elsewhere = "" if machine == here else f", on another machine, {machine}"
    yield f"\nMeasured on {measured['on']} with `{command}`{elsewhere}.\n"


def _row(row: Row) -> str:
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
    shown = "none" if row["value"] is None else f"{figure(row['value'])} {row['unit']}".strip()
    if _missed(row):
        ratio, shown = (f"**{ratio}**", shown) if ratio else (ratio, f"**{shown}**")
    cells = [row["name"], ratio, row["ratio_to"], _aim(row), shown, str(len(row["samples"]))]
    return f"| {' | '.join(cells)} |"


def _aim(row: Row) -> str:
    """Tell the target, and the moonshot."""
    moonshot = row.get("moonshot")
    if moonshot is None:
        return str(row["target"])
    reached = "reached" if row["ratio"] is not None and row["ratio"] >= moonshot else "not reached"
    return "; ".join(filter(None, [row["target"], f"moonshot {moonshot}: {reached}"]))


def _missed(row: Row) -> bool:
    """Tell whether a figure is not what it has to be: `>= 0.75` of a ratio, `< 250` of a value.

    What was not measured is missed, and so is a target that nobody can read: somebody has to look.
    """
    if not row["target"]:
        return False
    found = _TARGET.fullmatch(row["target"])
    value = row["value"] if row["ratio"] is None else row["ratio"]
    if found is None or value is None:
        return True
    bound = float(found[2])
    return not {">=": value >= bound, "<": value < bound, "": value == bound}[found[1]]
