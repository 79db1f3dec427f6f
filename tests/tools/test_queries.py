"""The four functions that programs call: what they could not read is no answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specmux_tools import SchemasError, diff, explain, load, search, validate

SWAGGER: dict[str, Any] = {"apps/v1": {"swagger": "2.0", "info": {}, "paths": {}, "definitions": {}}}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: diff(SWAGGER, SWAGGER),
        lambda: diff({}, SWAGGER),
        lambda: explain(SWAGGER, "pods"),
        lambda: search(SWAGGER, "pods"),
        lambda: validate(SWAGGER, "{}"),
    ],
)
def test_document_of_another_kind_is_refused_by_name(ask: Callable[[], object]) -> None:
    with pytest.raises(SchemasError, match="apps/v1: not an OpenAPI v3 document"):
        ask()


def test_text_without_an_object_is_no_valid_one() -> None:
    with pytest.raises(SchemasError, match="no object"):
        validate({}, "# nothing\n")


WIDGETS = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer, description: How large.}}}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: SIZE}\n"


@pytest.mark.parametrize("is_folder", [True, False])
def test_folder_or_file_is_loaded_for_every_function(tmp_path: Path, is_folder: bool) -> None:
    (tmp_path / "crd.yaml").write_text(WIDGETS)
    documents = load(tmp_path if is_folder else str(tmp_path / "crd.yaml"))
    assert list(documents) == ["apis/example.com/v1"]
    assert [
        each.is_valid for size in ("1", "x") for each in validate(documents, WIDGET.replace("SIZE", size))
    ] == [
        True,
        False,
    ]
    assert "How large." in explain(documents, "widget.spec.size")
    assert diff(documents, documents) == ()
    hit = search(documents, "size").rows[0]
    assert (hit.api_version, hit.kind_name, hit.field) == ("example.com/v1", "Widget", "spec.size")
    assert hit.kind.kind.kind == hit.kind_name


def test_folder_with_a_broken_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(WIDGETS)
    (tmp_path / "broken.json").write_text('{"openapi": "3.0.0", "paths": ')
    with pytest.raises(SchemasError, match=r"broken\.json"):
        load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SchemasError, match="no document in it"):
        load(tmp_path / "empty")
    with pytest.raises(SchemasError, match="none"):
        load(tmp_path / "none")
