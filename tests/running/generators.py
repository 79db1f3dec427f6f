"""The recipes of docs/generators.md, run as they stand there, and their tools.

A tool is the one on PATH, or is installed once into the tests' cache, in the page's version.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from running.schema_clients import CACHE, go_program, node_modules, tried

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "generators.md"
EXAMPLE: Final = "apps_v1"
JAR: Final = "openapi-generator-cli.jar"
TYPESCRIPT: Final = "typescript@5"
ROUND_TRIP: Final = Path(__file__).with_name("round_trip.py")

_FOLDER: Final = CACHE / "generators"
_REPOSITORY: Final = Path.home() / ".m2" / "repository"


class Recipe(NamedTuple):
    """``title``: what it writes, tool and version; ``lines`` are shell."""

    title: str
    lines: str

    def script(self, stem: str, folder: str = "models") -> str:
        """For another group-version than the example's; Python's modules need names that can be imported."""
        own = module_of(stem)
        script = re.sub(rf"(?<!models/)\b{EXAMPLE}\b", own, self.lines).replace(EXAMPLE, stem)
        if stem != EXAMPLE:
            script = re.sub(r"; \w+\.Deployment.*?(?=')", "", script)
        return script.replace("models/", f"{folder}/")


def recipes() -> list[Recipe]:
    found = re.findall(r"^## (.+?)\n+```sh\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [Recipe(*each) for each in found]


def module_of(stem: str) -> str:
    return re.sub("[^a-z0-9]", "_", stem)


def search_path() -> str:
    """With the tools installed here first."""
    folders = (_FOLDER / "bin", _FOLDER / "node_modules" / ".bin", CACHE / "bin")
    return os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])


def missing_tool(recipe: Recipe) -> str | None:
    """The first that is neither here nor in its registry. One process at a time: it may be half installed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "generators.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _missing_tool(recipe)


def _missing_tool(recipe: Recipe) -> str | None:
    for attempt in range(2):
        words = [line.split()[0] for line in recipe.lines.splitlines() if line[:1].strip()]
        missing = next((word for word in words if shutil.which(word, path=search_path()) is None), None)
        if missing is None and JAR in recipe.lines and not jar(recipe.title).is_file():
            missing = JAR
        if missing is None or attempt:
            return missing
        _install(recipe.title)
    return None


def jar(title: str) -> Path:
    """Of openapi-generator: where Maven puts it, or ``OPENAPI_GENERATOR_JAR``."""
    version = title.rpartition(" ")[2]
    place = f"org/openapitools/openapi-generator-cli/{version}/openapi-generator-cli-{version}.jar"
    return Path(os.environ.get("OPENAPI_GENERATOR_JAR") or _REPOSITORY / place)


def _install(title: str) -> None:
    name, _, version = title.rpartition(": ")[2].rpartition(" ")
    if name.startswith("datamodel"):
        tried([sys.executable, "-m", "venv", str(_FOLDER)])
        tried([str(_FOLDER / "bin" / "pip"), "install", "--quiet", f"{name}=={version}", "pydantic"])
    elif name == "openapi-generator":
        artifact = f"org.openapitools:openapi-generator-cli:{version}"
        tried(["mvn", "--quiet", "dependency:get", f"-Dartifact={artifact}"])
    elif name == "CUE":
        go_program(f"cuelang.org/go/cmd/cue@v{version}")
    elif name in ("json-schema-to-typescript", "openapi-typescript", "quicktype"):
        node_modules((f"{name}@{version}", TYPESCRIPT), _FOLDER)


def write_bundles(folder: Path, documents: Path) -> list[str]:
    """Both layouts for generators; the stems of the group-versions."""
    layouts = ["--layout", "models", "--layout", "partial-models"]
    command = [sys.executable, "-m", "specmux_aggregator.cli", "schemas", str(folder), *layouts]
    subprocess.run([*command, "--directory", str(documents)], check=True, stdout=subprocess.DEVNULL)
    return sorted(path.name.removesuffix(".openapi.json") for path in folder.glob("models/*.openapi.json"))


def run(recipe: Recipe, script: str, folder: Path) -> str:
    """What it says if it fails; else nothing."""
    beside = folder / JAR
    if JAR in recipe.lines and not beside.exists():
        beside.symlink_to(jar(recipe.title).resolve())
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env={**os.environ, "PATH": search_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stderr or done.stdout).strip()[-400:] if done.returncode else ""


def round_trip(folder: Path, recorded: Path, bundles: Path) -> dict[str, Any]:
    """Counts of objects and kinds, with the pydantic models in a folder."""
    command = [shutil.which("python", path=search_path()) or "python", str(ROUND_TRIP)]
    done = subprocess.run(
        [*command, str(recorded), str(bundles)], cwd=folder, check=True, stdout=subprocess.PIPE
    )
    counts: dict[str, Any] = json.loads(done.stdout)
    return counts
