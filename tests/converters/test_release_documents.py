from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import shared_data
from converters.record_release_documents import DATA, MODULE, PublishedRelease, pack_documents, published
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.release_documents import ReleaseDocuments, add_enums, facts_of
from specmux_converters.releases import RELEASES
from specmux_converters.synthesis import resources_of

SIZE_MAX = 150 * 1024

CHANGED_IN_PATCHES = {
    "1.30": {
        "api/v1",
        "apis/admissionregistration.k8s.io/v1",
        "apis/admissionregistration.k8s.io/v1alpha1",
        "apis/admissionregistration.k8s.io/v1beta1",
        "apis/apps/v1",
        "apis/batch/v1",
    }
}
"""Documents of the reference data that a later patch of the release changed: 1.30.0 has no default of a
LocalObjectReference's name, and does not require the items of some lists."""


@cache
def module_cache() -> Path | None:
    if named := os.environ.get("GOMODCACHE"):
        return Path(named)
    try:
        found = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return Path(found.stdout.strip())


def module_folder(release: str) -> Path:
    """Of the published documents; skips where the machine does not have them."""
    module, _ = built_in_releases().source_of(release)
    folder = module_cache()
    if folder is None or not (folder / module).is_dir():
        pytest.skip(f"no {module} in the module cache: go mod download {module}")
    return folder / module


@pytest.mark.parametrize("release", RELEASES)
def test_documents_equal_the_published_ones_without_descriptions(release: str) -> None:
    module, hash = built_in_releases().source_of(release)
    found = published(module, hash, module_folder(release)).documents

    assert built_in_releases().group_versions(release) == tuple(sorted(found))
    for key, document in found.items():
        assert built_in_releases().document(release, key) == facts_of(document), key


@pytest.mark.parametrize("release", [each for each in shared_data.NATIVE if each in (*RELEASES, "none")])
@shared_data.needs(shared_data.PUBLISHED)
def test_documents_equal_those_of_the_reference_data(release: str) -> None:
    known = built_in_releases().group_versions(release)
    differing = set()
    for key, path in shared_data.documents(release).items():
        assert key in known
        facts = built_in_releases().document(release, GroupVersion(key))
        if facts != facts_of(add_enums(shared_data.load(path), facts)):
            differing.add(key)

    assert differing == CHANGED_IN_PATCHES.get(release, set())


def text_of(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


def lines_of(data: bytes) -> Any:
    return orjson.loads(text_of(data))


def test_packing_the_same_modules_gives_the_same_bytes() -> None:
    sources = {release: built_in_releases().source_of(release) for release in RELEASES}
    releases = {
        release: published(module, hash, module_folder(release))
        for release, (module, hash) in sources.items()
    }

    packed, kept = pack_documents(releases), DATA.read_bytes()
    assert lines_of(packed)[1:] == lines_of(kept)[1:]
    if lines_of(kept)[0]["zstd"] == list(zstandard.ZSTD_VERSION):
        assert packed == kept


def test_file_is_small_names_its_sources_and_holds_no_prose() -> None:
    data = DATA.read_bytes()
    lines = lines_of(data)
    phrases = {"Accepted", "Created", "OK", "Unauthorized"}

    def descriptions(value: Any) -> set[str]:
        if isinstance(value, list):
            return {text for each in value for text in descriptions(each)}
        if isinstance(value, dict):
            own = value.get("description")
            found = {own} if isinstance(own, str) else set()
            others = (each for key, each in value.items() if key != "enum" or isinstance(each, dict))
            return found | {text for each in others for text in descriptions(each)}
        return {value} if isinstance(value, str) and " " in value else set()

    assert len(data) <= SIZE_MAX
    assert tuple(lines[0]["releases"]) == RELEASES
    for release in lines[0]["releases"].values():
        assert release["module"].startswith(f"{MODULE}@v1.")
        assert release["hash"].startswith("h1:")
    assert descriptions(lines) == phrases


def test_one_document_unpacks_a_part_of_the_file() -> None:
    data = DATA.read_bytes()
    whole = len(text_of(data))
    for key in ("apis/apps/v1", "apis/batch/v1", "apis/networking.k8s.io/v1"):
        documents = ReleaseDocuments(data)
        documents.document(RELEASES[-1], GroupVersion(key))

        assert sum(len(line) for lines in documents._streams.values() for line in lines) < whole / 2


def test_two_documents_share_no_object_that_a_reader_might_change() -> None:
    first, second = (built_in_releases().document("1.35", GroupVersion("apis/apps/v1")) for _ in range(2))
    first["components"]["schemas"].clear()
    first["paths"].clear()

    assert second == built_in_releases().document("1.35", GroupVersion("apis/apps/v1"))


def test_schemas_come_without_paths() -> None:
    whole = built_in_releases().document("1.35", GroupVersion("apis/apps/v1"))
    schemas = built_in_releases().document("1.35", GroupVersion("apis/apps/v1"), schemas_only=True)

    assert schemas == {**whole, "paths": {}}


@pytest.mark.parametrize("release", RELEASES)
def test_an_outline_names_the_resources_of_its_document(release: str) -> None:
    kept = built_in_releases()
    for key in filter(split, kept.group_versions(release)):
        outline = kept.outline(release, key)
        assert resources_of(outline, key) == resources_of(kept.document(release, key), key), key
        assert b'"responses"' not in orjson.dumps(outline)


def test_facts_are_without_prose_and_keep_what_is_called_description() -> None:
    document = {
        "info": {"title": "Kubernetes", "description": "A sentence."},
        "paths": {
            "/a": {
                "description": "A sentence.",
                "get": {
                    "parameters": [{"name": "pretty", "description": "A sentence."}],
                    "responses": {"200": {"description": "A sentence."}, "default": {"description": "A."}},
                },
            }
        },
        "components": {
            "schemas": {
                "A": {"description": "A sentence.", "properties": {"description": {"type": "string"}}}
            }
        },
    }

    assert facts_of(document) == {
        "info": {"title": "Kubernetes"},
        "paths": {
            "/a": {
                "get": {
                    "parameters": [{"name": "pretty"}],
                    "responses": {"200": {"description": "OK"}, "default": {}},
                }
            }
        },
        "components": {"schemas": {"A": {"properties": {"description": {"type": "string"}}}}},
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "b" * 30, "c,\n", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=12,
)
NAMED = st.dictionaries(st.sampled_from(["a", "b" * 30, "/c/{d}"]), VALUES, max_size=3)
DOCUMENTS = st.builds(
    lambda title, schemas, paths: {
        "info": {"title": title},
        "paths": paths,
        "components": {"securitySchemes": {}, **({} if schemas is None else {"schemas": schemas})},
    },
    st.sampled_from("ab"),
    st.none() | NAMED,
    NAMED,
)
KEYS = st.sampled_from([GroupVersion(each) for each in ("api/v1", "apis/apps/v1", "version")])
PUBLISHED = st.dictionaries(
    st.sampled_from(RELEASES),
    st.dictionaries(KEYS, DOCUMENTS, min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@given(PUBLISHED)
def test_whatever_is_packed_is_restored(releases: dict[str, dict[GroupVersion, Any]]) -> None:
    data = pack_documents(
        {name: PublishedRelease(f"module {name}", f"hash {name}", each) for name, each in releases.items()}
    )
    restored = ReleaseDocuments(data)

    assert lines_of(data)[0]["releases"].keys() == releases.keys()
    assert restored.releases == tuple(releases)
    for name, documents in releases.items():
        assert restored.source_of(name) == (f"module {name}", f"hash {name}")
        assert restored.group_versions(name) == tuple(sorted(documents))
        for key, document in documents.items():
            assert restored.document(name, key) == document


def test_a_command_that_reads_no_document_imports_nothing_of_it() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from specmux_aggregator.cli import main;"
        "CliRunner().invoke(main, ['--version']); CliRunner().invoke(main, ['validate', '--help']);"
        "print(*(each for each in sys.modules if 'release_documents' in each or 'built_in_rel' in each))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
