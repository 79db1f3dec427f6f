"""The documents that the golden verdicts of the JSON Schema catalogue are about, and schemas made of them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jsonschema_rs
import yaml

from shared_data import DATA, documents, load, read
from specmux_converters.crd import build
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import STRICT, SchemaForm
from specmux_converters.json_schema.kinds import Kind
from specmux_converters.recognise import DocumentKind as Recognised
from specmux_converters.recognise import recognise
from specmux_tools.json_schema_job import example_of

RELEASE = "1.35"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.1 as sigs.k8s.io/yaml reads it: times stay text."""


_Loader.yaml_implicit_resolvers = {
    key: [(tag, pattern) for tag, pattern in entries if tag != "tag:yaml.org,2002:timestamp"]
    for key, entries in _Loader.yaml_implicit_resolvers.items()
}


def of_kubernetes() -> dict[GroupVersion, Document]:
    return {GroupVersion(key): load(path) for key, path in documents(RELEASE).items()}


def of_custom_resources() -> dict[GroupVersion, Document]:
    """Of all definitions in ``data/crds``; of two of one name the first by path, which is the whole one."""
    manifests = []
    for path in sorted((DATA / "crds").rglob("*"), reverse=True):
        if not path.is_file() or path.name == "INDEX.json":
            continue
        try:
            found = recognise(read(path))
        except ConverterError:
            continue
        if found.kind is Recognised.CRDS:
            manifests += found.documents
    return dict(build(manifests).documents.items())


@cache
def schemas() -> dict[GroupVersion, DocumentSchemas]:
    found = of_kubernetes() | of_custom_resources()
    return {key: DocumentSchemas(found[key], key, example_of) for key in sorted(found)}


@cache
def kinds() -> dict[tuple[str, str], tuple[DocumentSchemas, Kind]]:
    """By ``apiVersion`` and ``kind``."""
    return {(kind.api_version, kind.kind): (each, kind) for each in schemas().values() for kind in each.kinds}


@cache
def validator(api_version: str, kind: str, form: SchemaForm = STRICT) -> Any:
    owner, found = kinds()[api_version, kind]
    return jsonschema_rs.Draft7Validator(owner.kind(found, form), validate_formats=True)


def manifest(name: str) -> Any:
    """A YAML document of ``data/manifests``, by ``file#index``; None where no object can be read."""
    file, index = name.rsplit("#", 1)
    path = DATA / "manifests" / file
    path = path if path.exists() else path.with_name(f"{path.name}.gz")
    if not path.exists():
        return None
    text = re.split(r"(?m)^---.*\n?", read(path).decode())[int(index)]
    try:
        value = yaml.load(text, _Loader)
    except yaml.YAMLError:
        return None
    return _with_text_keys(value) if isinstance(value, dict) else None


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _with_text_keys(each) for key, each in value.items()}
    return [_with_text_keys(each) for each in value] if isinstance(value, list) else value
