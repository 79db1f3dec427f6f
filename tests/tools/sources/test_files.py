"""Documents in files and folders, as commands are given them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from fakes.apiserver import document, swagger
from specmux_aggregator.errors import SourceError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import GroupVersionKind
from specmux_tools.sources.disk.files import FileSource
from specmux_tools.sources.source import LoadedDocuments

CORE, APPS = GroupVersion("api/v1"), GroupVersion("apis/apps/v1")


def definition(plural: str, group: str = "example.com", **names: Any) -> dict[str, Any]:
    kind = plural.removesuffix("s").title()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }


def written(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def keys(loaded: LoadedDocuments) -> list[str]:
    return sorted(loaded.documents.documents)


def test_a_folder_may_hold_every_kind_of_document(tmp_path: Path) -> None:
    written(tmp_path / "api/v1.json", document("api/v1"))
    written(tmp_path / "apis__apps__v1_openapi.json.gz", gzip.compress(document("apis/apps/v1")))
    written(tmp_path / "old.yaml", yaml.safe_dump(orjson.loads(swagger("apis/batch/v1"))))
    written(tmp_path / "crds/widgets.yaml", yaml.safe_dump(definition("widgets")))
    loaded = FileSource(directories=[tmp_path]).load()
    assert keys(loaded) == ["api/v1", "apis/apps/v1", "apis/batch/v1", "apis/example.com/v1"]
    assert loaded.unread == ()
    assert loaded.documents.find(GroupVersionKind("example.com", "v1", "Widget")) is not None


def test_definitions_of_one_group_in_several_files_make_one_document(tmp_path: Path) -> None:
    for plural in ("widgets", "gadgets"):
        written(tmp_path / f"{plural}.yaml", yaml.safe_dump(definition(plural)))
    loaded = FileSource(directories=[tmp_path]).load()
    assert [kind.kind.kind for kind in loaded.documents] == [
        "Gadget", "GadgetList", "Widget", "WidgetList"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"openapi": "3.0.0", ', "not JSON"),
        (b"kind: Kustomization\n", "neither Swagger 2.0, OpenAPI 3.0 nor CustomResourceDefinitions"),
        (b"", "there is nothing in it"),
        (b'{"openapi": "3.0.0", "info": {}, "paths": {}}', "name the file as its group-version"),
        (gzip.compress(document("api/v1"))[:-9], "gzip"),
    ],
)
def test_what_cannot_be_used_is_told_and_takes_nothing_else_away(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    written(tmp_path / "good.json", document("api/v1"))
    bad = written(tmp_path / "bad.json", data)
    loaded = FileSource(directories=[tmp_path]).load()
    assert keys(loaded) == ["api/v1"]
    assert [each.where for each in loaded.unread] == [str(bad)]
    assert reason in loaded.unread[0].reason


def test_an_unusable_definition_is_told_by_its_name(tmp_path: Path) -> None:
    broken = definition("widgets")
    broken["spec"]["scope"] = "Galaxy"
    written(tmp_path / "a.yaml", yaml.safe_dump_all([broken, definition("gadgets")]))
    loaded = FileSource(directories=[tmp_path]).load()
    assert keys(loaded) == ["apis/example.com/v1"]
    assert [(each.where, each.reason) for each in loaded.unread] == [
        ("widgets.example.com", "/spec/scope: must be Namespaced or Cluster")
    ]


def test_the_first_of_two_files_counts(tmp_path: Path) -> None:
    first = written(tmp_path / "a.json", document("api/v1", "first"))
    second = written(tmp_path / "b.json", document("api/v1", "second"))
    loaded = FileSource(files=[first, second]).load()
    assert loaded.documents.documents[CORE]["info"]["version"] == "first"
    assert [str(each) for each in loaded.unread] == ["api/v1: is in several files; the first counts"]


def test_a_document_goes_before_what_is_converted_or_built(tmp_path: Path) -> None:
    old = written(tmp_path / "a.json", swagger("apis/example.com/v1"))
    crd = written(tmp_path / "b.yaml", yaml.safe_dump(definition("widgets")))
    native = written(tmp_path / "c.json", document("apis/example.com/v1", "native"))
    loaded = FileSource(files=[old, crd, native]).load()
    assert loaded.documents.documents[GroupVersion("apis/example.com/v1")]["info"]["version"] == "native"


def test_a_merged_document_is_of_all_its_group_versions(tmp_path: Path) -> None:
    merged = orjson.loads(document("api/v1"))
    merged["paths"] |= orjson.loads(document("apis/apps/v1"))["paths"]
    path = written(tmp_path / "merged.json", orjson.dumps(merged))
    assert FileSource(files=[path]).group_versions() == (CORE, APPS)


def test_files_named_as_another_group_version_are_not_read(tmp_path: Path) -> None:
    written(tmp_path / "api/v1.json", document("api/v1"))
    written(tmp_path / "apis/apps/v1.json", b"broken")
    source = FileSource(directories=[tmp_path])
    assert keys(source.load([CORE])) == ["api/v1"]
    assert source.load([CORE]).unread == ()
    assert len(source.load().unread) == 1


def test_absent_group_versions_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document("api/v1"))
    assert keys(FileSource(files=[path]).load([APPS])) == []


def test_resources_have_the_names_of_their_definitions(tmp_path: Path) -> None:
    crd = definition("widgets", shortNames=["wd"], singular="widget")
    path = written(tmp_path / "a.yaml", yaml.safe_dump(crd))
    (found,) = FileSource(files=[path]).resources()[GroupVersion("apis/example.com/v1")]
    assert (found.name, found.singular, found.short_names) == ("widgets", "widget", ("wd",))


def test_no_document_at_all_is_an_error_that_says_what_was_looked_for(tmp_path: Path) -> None:
    written(tmp_path / "readme.txt", b"hello")
    with pytest.raises(SourceError, match=r"no document in it: no file ends in \.json"):
        FileSource(directories=[tmp_path])


def test_nothing_usable_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", b"{")
    with pytest.raises(SourceError, match=r"no document in it can be used\n  .*a\.json: .*not JSON"):
        FileSource(files=[path]).load()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a folder"):
        FileSource(directories=[tmp_path / "none"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    written(tmp_path / "a.json", document("api/v1"))
    written(tmp_path / "b.json", document("apis/apps/v1")).chmod(0)
    loaded = FileSource(directories=[tmp_path]).load()
    assert [each.reason for each in loaded.unread] == ["Permission denied"]


def test_hidden_folders_are_not_looked_into(tmp_path: Path) -> None:
    written(tmp_path / ".git/a.json", b"{")
    written(tmp_path / "a.json", document("api/v1"))
    assert FileSource(directories=[tmp_path]).load().unread == ()
