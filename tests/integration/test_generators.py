"""Generators of typed models read our bundles: the recipes of docs/generators.md, as they stand there.

Tools come from PyPI, npm, Maven Central and Go's proxy; a recipe whose tool is not to be had is skipped.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from running.generators import (
    EXAMPLE,
    JAR,
    PAGE,
    Recipe,
    missing_tool,
    recipes,
    round_trip,
    run,
    write_bundles,
)
from shared_data import DATA, GOLDEN

pytestmark = pytest.mark.long

DOCUMENTS = DATA / "k8s-pairs" / "1.35" / "v3"
GROUP_VERSIONS = 36
WHOLE = {"accepted: same", "unknown fields: same"}


def tool_for(word: str) -> Recipe:
    """The recipe whose title has the word; skips without its tool."""
    recipe = next(each for each in recipes() if word in each.title)
    missing = missing_tool(recipe)
    if missing is not None:
        pytest.skip(f"{recipe.title}: no {missing} here, nor in a registry")
    return recipe


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    assert len(write_bundles(folder, DOCUMENTS)) == GROUP_VERSIONS
    return folder


@pytest.mark.parametrize("title", [each.title for each in recipes()])
@pytest.mark.parametrize("layout", ["models", "partial-models"])
def test_a_recipe_runs(bundles: Path, title: str, layout: str, tally: Callable[[str, int], None]) -> None:
    recipe = tool_for(title)
    assert run(recipe, recipe.script(EXAMPLE, layout), bundles) == ""
    tally("recipes of generators", 1)


def test_recorded_objects_round_trip_as_the_page_says(
    bundles: Path, tally: Callable[[str, int], None]
) -> None:
    recipe = tool_for("pydantic")
    stems = [path.stem for path in (bundles / "partial-models").glob("*[0-9].json")]
    assert len(stems) == GROUP_VERSIONS
    for stem in stems:
        assert run(recipe, recipe.script(stem, "partial-models"), bundles) == ""
    recorded = GOLDEN / "json-schema" / "verdicts-typed.jsonl.gz"
    counts = round_trip(bundles, recorded, bundles / "partial-models")
    assert counts.pop("kinds") == 175
    if sum(counts.values()) == sum(figures().values()):
        assert counts == figures()
    else:  # another set than the page's
        assert {name for name in counts if not name.startswith("undecodable")} <= WHOLE
    tally("recorded objects that round-trip", counts["accepted: same"] + counts["unknown fields: same"])


def figures() -> dict[str, int]:
    """The counts in the page's table."""
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \| ([0-9]+) \|$", PAGE.read_text(), re.MULTILINE)
    return {outcome: int(number) for outcome, number in rows}


def test_openapi_generator_reads_the_merged_swagger(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    recipe = tool_for("openapi-generator")
    swagger = tmp_path / "swagger.json"
    command = [sys.executable, "-m", "specmux_aggregator.cli", "convert", str(DOCUMENTS), "--to", "v2"]
    subprocess.run([*command, "--output-file", str(swagger)], check=True, capture_output=True)
    generate, compiled = f"java -jar {JAR} generate -i swagger.json", "python -m compileall -q swagger"
    options = "-g python -o swagger --global-property models,modelDocs=false,modelTests=false"
    assert run(recipe, f"{generate} {options}\n{compiled}", tmp_path) == ""
    models = [path for path in tmp_path.rglob("models/*.py") if path.name != "__init__.py"]
    tally("models of the merged Swagger 2.0", len(models))
    assert len(models) == 715
