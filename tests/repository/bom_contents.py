"""Checks that a bill of materials (CycloneDX, JSON) lists what an environment holds, with its licences,
and nothing else: ``bom_contents.py BOM SITE_PACKAGES``.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

OURS = "specmux"


def faults(bom: dict[str, Any], installed: dict[str, str]) -> list[str]:
    """What the bill lacks or has too much of. ``installed``: name to version; ours is the main component."""
    if OURS not in installed:
        return [f"{OURS} is not installed in the environment"]
    parts = [bom["metadata"]["component"], *bom["components"]]
    listed = {normal(part["name"]): part for part in parts}
    found = [f"missing: {name}" for name in sorted(installed.keys() - listed.keys())]
    found += [f"unexpected: {name}" for name in sorted(listed.keys() - installed.keys())]
    for name in sorted(installed.keys() & listed.keys()):
        version = listed[name].get("version")
        if version != installed[name]:
            found.append(f"{name}: listed is {version}, installed is {installed[name]}")
        if not any(map(licence, listed[name].get("licenses", []))):
            found.append(f"{name}: no licence")
    if normal(parts[0]["name"]) != OURS:
        found.append(f"the main component is {parts[0]['name']}")
    return found


def licence(choice: dict[str, Any]) -> str | None:
    one = choice.get("license", {})
    return choice.get("expression") or one.get("id") or one.get("name")


def installed_in(site_packages: Path) -> dict[str, str]:
    return {normal(item.name): item.version for item in distributions(path=[str(site_packages)])}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    held = installed_in(Path(sys.argv[2]))
    found = faults(json.loads(Path(sys.argv[1]).read_text()), held)
    print("\n".join(found) or f"{len(held)} packages, each with its version and a licence")
    sys.exit(bool(found))
