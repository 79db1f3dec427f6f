"""What ``specmux explain -o skeleton`` writes, ``specmux validate`` knows every field of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from data.explained_documents import release, release_kinds
from specmux_aggregator.cli import main
from specmux_tools.explanation.skeleton import skeleton


@pytest.mark.long
def test_every_skeleton_passes_without_an_unknown_field(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    for key, document in release().items():
        path = tmp_path / "documents" / f"{key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(document))
    # A WatchEvent is no object: it has neither kind nor apiVersion.
    kinds = [found for found in release_kinds() if found.kind.kind != "WatchEvent"]
    written = [skeleton(found.document, found.kind, found.schema) for found in kinds]
    (tmp_path / "skeletons.yaml").write_text("---\n".join(written))
    arguments = ["validate", str(tmp_path / "skeletons.yaml"), "-o", "json"]
    done = CliRunner().invoke(main, [*arguments, "--directory", str(tmp_path / "documents")])
    told = json.loads(done.stdout)
    checks = Counter(violation["check"] for each in told["objects"] for violation in each["violations"])
    # What is to be filled in is empty, which schemas and rules may refuse; a name, too. Without the extra for
    # rules these are not checked.
    assert checks.keys() <= {"definition", "metadata", "schema", "rule", "not-checked"}
    # A skeleton of a list is opened, so its items are objects as well.
    assert len(told["objects"]) >= len(written) > 230
    tally("skeletons that specmux validate knows every field of", len(written))
