"""Benchmarks have documents to run on where the reference data is not there."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import orjson
import pytest

from specmux_converters.recognise import DocumentKind, recognise

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def test_made_documents_are_of_every_kind_and_size_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    from made_documents import write_documents

    said = write_documents(tmp_path)
    assert "Swagger 2.0 of 4." in said and "97 CustomResourceDefinitions" in said
    documents = sorted((tmp_path / "data/k8s-pairs/1.35/v3").rglob("*.json.gz"))
    assert len(documents) == 36
    assert all(orjson.loads(gzip.decompress(path.read_bytes()))["openapi"] == "3.0.0" for path in documents)
    manifests = sorted((tmp_path / "data/crds").rglob("*.yaml"))
    assert {recognise(path.read_bytes()).kind for path in manifests} == {DocumentKind.CRDS}
