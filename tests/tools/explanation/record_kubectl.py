"""Writes ``kubectl_outputs.jsonl``: what kubectl prints for every resource of the reference data, plainly and
recursively, and for random paths, as digests. The documents are served by specmux from a folder.

    .venv/bin/python tests/tools/explanation/record_kubectl.py [--paths 300] [--check]

Without published documents (``SPECMUX_SHARED`` names no folder) it writes ``kubectl_outputs_built_in.jsonl``,
of the built-in ones.

``--check`` compares our outputs with kubectl's of now, to the byte, and writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import orjson

HERE = Path(__file__).resolve()
sys.path.append(str(HERE.parents[2]))

from data.explained_documents import kubectl_text, random_path, release, release_kinds, release_resources  # noqa: E402
from running.kubectl import KUBECTLS, Kubectl  # noqa: E402
from running.service import directory, service  # noqa: E402
from shared_data import PUBLISHED, SHARED  # noqa: E402
from specmux_converters.group_versions import api_version, split  # noqa: E402
from specmux_tools.errors import SchemasError  # noqa: E402

Case = tuple[str, str, list[str], bool]
"""Document, plural, path, whether recursive."""

RECORDED = HERE.with_name(
    "kubectl_outputs.jsonl" if (SHARED / PUBLISHED).exists() else "kubectl_outputs_built_in.jsonl"
)
AT_ONCE = 2


def cases(paths: int) -> list[Case]:
    made: list[Case] = []
    for key, resource in release_resources():
        made += [(key, resource.name, [], False), (key, resource.name, [], True)]
    random = Random(135)
    for _ in range(paths):
        key, resource = random.choice(release_resources())
        kind = release_kinds().find(resource.kind)
        if kind is not None:
            path = random_path(kind.document["components"]["schemas"], dict(kind.schema), random)
            made.append((key, resource.name, path, random.random() < 0.4))
    return made


def ours(case: Case) -> str | None:
    key, plural, path, recursive = case
    group, version = split(key) or ("", "")  # type: ignore[arg-type]
    try:
        return kubectl_text(release()[key], (group, version, plural), path, recursive=recursive)  # type: ignore[index]
    except SchemasError:
        return None


def digest(text: str | None) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24] if text is not None else "refused"


async def kubectl_outputs(made: list[Case], program: Path) -> list[str | None]:
    with tempfile.TemporaryDirectory() as folder:
        for key, document in release().items():
            path = Path(folder, "documents", f"{key}.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(orjson.dumps(document))
        async with service(directory("release", Path(folder, "documents"))) as client:
            watch = client.app.discovery
            assert watch is not None
            await client.until(
                lambda: bool(watch.index.is_complete) and bool(watch.index.directory.versions()), "asked"
            )
            kubectl = Kubectl(f"--server={client.base}", home=Path(folder), program=program)
            await kubectl("api-resources")
            slots = asyncio.Semaphore(AT_ONCE)

            async def printed(case: Case) -> str | None:
                key, plural, path, recursive = case
                group, version = split(key) or ("", "")  # type: ignore[arg-type]
                arguments = [
                    "explain",
                    ".".join((plural, *path)),
                    f"--api-version={api_version(group, version)}",
                ]
                async with slots:
                    code, out, errors = await kubectl(*arguments, *["--recursive"] * recursive)
                if code and "does not exist" not in errors:
                    print(case, errors.strip())
                return None if code else out

            return list(await asyncio.gather(*map(printed, made)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--paths", type=int, default=300)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    program = next((path for path in KUBECTLS if path.name.endswith("1.32")), KUBECTLS[-1])
    made = cases(options.paths)
    printed = asyncio.run(kubectl_outputs(made, program))
    equal = sum(ours(case) == text for case, text in zip(made, printed, strict=True))
    for case, text in zip(made, printed, strict=True):
        if ours(case) != text:
            print("differs:", case)
    print(f"kubectl explain: {equal} of {len(made)}")
    if not options.check:
        lines: list[Any] = [[*case, digest(text)] for case, text in zip(made, printed, strict=True)]
        RECORDED.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


if __name__ == "__main__":
    main()
