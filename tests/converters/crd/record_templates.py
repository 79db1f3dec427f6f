"""Write ``templates.json``: what documents of custom resources share, of the newest release, and how each
older one differs. ``python record_templates.py 1.30=FILE … 1.37=FILE``, where a file is the release's
``api/openapi-spec/v3/apis__apps__v1_openapi.json`` (in the Go module k8s.io/kubernetes). What is in
apiextensions' own code stays: the texts of metadata, and DeleteOptions' kinds since 1.36,
whose documents do not list them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import orjson

from specmux_converters.crd import templates
from specmux_converters.crd.templates import DELETE_OPTIONS
from specmux_converters.operations import GROUP_VERSION_KIND
from specmux_converters.releases import minor_release

FILE = Path(templates.__file__).with_name("templates.json")


def shared(release: str, document: Any) -> dict[str, Any]:
    document["info"]["version"] = release
    found = templates.templates_of(document)
    assert found is not None, release
    schemas = {**found.schemas, **found.scale}
    options = dict(schemas[DELETE_OPTIONS])
    kinds = options.pop(GROUP_VERSION_KIND)
    return {
        "schemas": dict(sorted({**schemas, DELETE_OPTIONS: options}.items())),
        "parameters": {
            action: {each["name"]: each for each in listed} for action, listed in found.parameters.items()
        },
        "options": {f"{kind['group']}/{kind['version']}": True for kind in kinds},
    }


def difference(newer: Any, older: Any) -> Any:
    """The merge patch (RFC 7386) that makes the older of the newer."""
    if not (isinstance(newer, dict) and isinstance(older, dict)):
        return older
    return {
        key: difference(newer.get(key), older[key]) if key in older else None
        for key in {**newer, **older}
        if newer.get(key) != older.get(key)
    }


def main(words: list[str]) -> None:
    given = dict(word.split("=", 1) for word in words)
    made = {
        release: shared(release, orjson.loads(Path(file).read_bytes())) for release, file in given.items()
    }
    newest, *rest = sorted(made, reverse=True)
    rows, newer = [], newest
    for release in rest:
        patch = difference(made[newer], made[release])
        if patch:
            rows.append({"until": minor_release(newer), "patch": patch})
        newer = release
    old = orjson.loads(FILE.read_bytes())
    texts = {name: old[name] for name in ("object_meta", "list_meta", "embedded_fields")}
    text = json.dumps({**made[newest], **texts, "older": rows}, indent=1, ensure_ascii=False)
    FILE.write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
