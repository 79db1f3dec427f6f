"""The mistakes that manifests have most: ``specmux validate`` finds those that docs/comparison.md says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import orjson
from click.testing import CliRunner

from shared_data import DATA
from specmux_aggregator.cli import main

PAGE = Path(__file__).resolve().parents[3] / "docs/comparison.md"
ROW = re.compile(r"^\| (found|passes) \| \w+ \| \w+ \| ([^|]*) \|", re.MULTILINE)


def test_mistakes_are_found_as_the_page_says(tally: Callable[[str, int], None]) -> None:
    files = [each for each in (DATA / "defects/mistakes").iterdir() if each.suffix in (".yaml", ".json")]
    alone = [each for each in files if b"CustomResourceDefinition" in each.read_bytes()]
    found = dict.fromkeys((str(each) for each in files), "passes")
    for group in ([each for each in files if each not in alone], *([each] for each in alone)):
        arguments = ["validate", "-o", "json", "--directory", DATA / "k8s-pairs/1.35/v3", *group]
        result = CliRunner().invoke(main, [str(each) for each in arguments])
        for each in orjson.loads(result.stdout)["objects"]:
            if each["status"] != "valid":
                found[each["file"]] = "found"
    tally("mistakes of manifests that are found", list(found.values()).count("found"))
    assert len(found) == 47
    claimed = {
        mistake.split()[0]: verdict
        for verdict, mistakes in ROW.findall(PAGE.read_text())
        for mistake in mistakes.split(", ")
    }
    assert claimed == {Path(file).name.partition("-")[0]: verdict for file, verdict in found.items()}
