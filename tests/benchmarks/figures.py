"""Figures of a benchmark as data: rows of values, side by side for specmux and for peers.

A benchmark keeps them as ``bench-out/NAME.json``; tables.toml has them as a table whose ``plot`` is NAME,
docs/benchmarks/ shows it below the image. ``plots`` draws either. Rows and columns are named as in the table.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

IS_MADE: Final = "SPECMUX_MADE_DOCUMENTS" in os.environ
"""Whether run_all made the documents: the reference data is not here."""

FOLDER: Final = Path(__file__).resolve().parents[2] / "bench-out"
"""What a run leaves; not in the repository."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table; ``shown`` is what its bars are called."""

    header: str
    shown: str
    is_ours: bool = True


def ours(header: str = "ours", shown: str = "specmux") -> Column:
    return Column(header, shown)


def peer(header: str) -> Column:
    return Column(header, header, is_ours=False)


@dataclass(frozen=True, slots=True)
class Plot:
    """Which columns and rows of a table are drawn, and under what title."""

    title: str
    unit: str
    columns: tuple[Column, ...]
    rows: str = ""
    """Regular expression on the name of a row."""
    named_by: int = 1
    """That many cells are the name of a row."""


@dataclass(frozen=True, slots=True)
class Row:
    """Values by column; None where nothing was measured."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """All values are in one unit, and less is better."""

    name: str
    title: str
    unit: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


PLOTS: Final = {
    "serving": Plot(
        "What a request costs the serving process",
        "µs CPU",
        (ours("specmux"), peer("nginx")),
        r"^(?!largest)",
        named_by=2,
    ),
    "aggregation": Plot(
        "Taking in the documents of a release", "s CPU", (ours("measured"),), r"^(36|the same)"
    ),
    "first_fetch": Plot(
        "A native document, the process in front",
        "µs CPU",
        (ours("specmux"), peer("the least in Python"), peer("Go's reverse proxy")),
    ),
    "conversion": Plot(
        "Swagger 2.0 to OpenAPI v3",
        "ms CPU",
        (ours(), peer("openapiconv (Go)"), peer("swagger2openapi")),
        r"cold",
    ),
    "dictionary": Plot(
        "What a client gets when Kubernetes' documents change from 1.32 to 1.35",
        "KB",
        (ours("with the old ones", "with the old documents"), peer("gzip"), peer("zstd")),
    ),
    "encoding": Plot("JSON to Protobuf and to CBOR", "ms CPU", (ours(), peer("Go"))),
    "diff": Plot("Comparing documents, whole processes", "s CPU", (ours(), peer("oasdiff")), r"^(?!library)"),
    "crds": Plot(
        "YAML of CustomResourceDefinitions, read into objects",
        "ms CPU",
        (ours(), peer("PyYAML with libyaml")),
    ),
    "cluster": Plot(
        "Until a cluster's CustomResourceDefinitions are served",
        "s",
        (ours("ready", "ready"), ours("CPU until then", "CPU until then")),
        r"definitions$",
    ),
    "schemas": Plot("JSON Schemas", "s CPU", (ours(),), r"^all"),
    "search": Plot(
        "The index of kinds and fields of 1.35 and custom resources",
        "s CPU",
        (
            ours("1.35 and its custom resources", "once"),
            ours("ten times the custom resources", "ten times the custom resources"),
        ),
        r"^(build|loaded)",
    ),
    "explain": Plot("Explaining deployments.spec", "s CPU", (ours("CPU"),)),
    "validation": Plot(
        "Validating a manifest, start not counted",
        "ms CPU",
        (ours("specmux"), peer("kubeconform"), peer("kubectl-validate")),
    ),
    "proxying": Plot(
        "A request that is passed on, median",
        "µs",
        (ours("through specmux", "through specmux"), peer("to the backend")),
        r"^GET",
    ),
    "kubectl": Plot("kubectl, on the clock", "ms", (ours("specmux"), peer("own server"))),
    "start": Plot("Starting a command", "ms CPU", (ours("CPU"),)),
    "store": Plot(
        "Bodies of 1 MB in a store on disk, median",
        "ms",
        (ours(), peer("diskcache plain"), peer("files with rename"), peer("hishel")),
        r" body|of a body",
    ),
}
"""By the name of the benchmark, of its figures and of the image."""


def keep(name: str, rows: Mapping[str, Iterable[float | None]]) -> None:
    """Writes what was measured; columns and rows in which nothing was are left out."""
    plot = PLOTS[name]
    found = {row: tuple(values) for row, values in rows.items()}
    there = [
        place for place in range(len(plot.columns)) if any(row[place] is not None for row in found.values())
    ]
    figures = Figures(
        name,
        plot.title,
        plot.unit,
        tuple(plot.columns[place] for place in there),
        tuple(Row(row, tuple(values[place] for place in there)) for row, values in found.items()),
    )
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(asdict(figures), indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def kept(path: Path) -> Figures:
    """What ``keep`` wrote."""
    data = json.loads(path.read_text(encoding="utf-8"))
    columns = tuple(Column(**column) for column in data["columns"])
    rows = tuple(Row(row["name"], tuple(row["values"])) for row in data["rows"])
    return Figures(data["name"], data["title"], data["unit"], columns, rows)


def in_page(page: str, name: str) -> Figures:
    """The figures of the first table below the image ``NAME.svg``.

    ValueError where a column is missing, or a value is in another unit than the plot.
    """
    plot = PLOTS[name]
    _, image, below = page.partition(f"/{name}.svg)")
    table = re.search(r"(?:^\|.*\n?)+", below, re.MULTILINE)
    if not image or table is None:
        raise ValueError(f"no image {name}.svg with a table below it")
    header, _, *lines = [_cells(line) for line in table[0].splitlines()]
    if missing := [column.header for column in plot.columns if column.header not in header]:
        raise ValueError(f"{name}: the table has no column {missing[0]!r}, but {header}")
    places = [header.index(column.header) for column in plot.columns]
    rows = []
    for cells in lines:
        row = ", ".join(cells[: plot.named_by]).replace("`", "")
        if re.search(plot.rows, row):
            rows.append(Row(row, tuple(_number(cells[place], plot.unit) for place in places)))
    return Figures(name, plot.title, plot.unit, plot.columns, tuple(rows))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _number(cell: str, unit: str) -> float | None:
    """The first number of a cell; of a range (``10–14 ms``, ``10 to 14 ms``) its middle."""
    found = re.match(r"([\d.,]+)(?:(?:–| to )([\d.,]+))?(?: ([^\W\d]+))?", cell)
    if found is None:
        return None
    if found[3] not in (None, unit.split()[0]):
        raise ValueError(f"{cell!r} is not in {unit}")
    low, high = (float(text.strip(",").replace(",", "")) for text in (found[1], found[2] or found[1]))
    return round((low + high) / 2, 4)
