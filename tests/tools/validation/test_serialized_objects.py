"""Objects of the kinds that Kubernetes has test data of, as JSON and YAML, beside what kubectl-validate 0.0.4
says to them with the same documents: ``kubectl-validate --local-schemas DIR -o json FILE``, by file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from data.built_in_swagger import documents_of
from shared_data import DATA, documents, load, needs, read
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet, KindSchema
from specmux_tools.validation import Validator

RECORDED = Path(__file__).parent / "recorded" / "kubectl-validate.json"
FOLDER = DATA / "k8s-serialized-objects" / "v1.35.0"

DIFFERENT = {
    "DeleteOptions": "it is no object that is stored, which kubectl-validate wants of every kind",
    "Status": "its metadata is a ListMeta, which kubectl-validate reads as ObjectMeta",
}
"""Kinds with another verdict, and why."""

NO_KIND = ("no kind ", "Object 'Kind' is missing", ": failed to retrieve validator", ": GVK cannot be empty")
"""The same said in other words."""

FREER_NAMES = ("SubjectAccessReview", "Service", "ClusterRole")
"""Kinds whose names an apiserver does not check as subdomains, and kubectl-validate does."""


def is_explained(text: str, name: str) -> bool:
    """kubectl-validate puts a namespace of its own in, so that it finds nothing wrong with it. It lacks the
    rules of Kubernetes' own kinds, such as that of finalizers (core ValidateObjectMeta)."""
    if text.startswith(("metadata.namespace: ", *NO_KIND)):
        return True
    if text.startswith("metadata.managedFields[") and ".operation: " in text:
        return True  # refused by both; the words are those of the newest release
    if text.startswith("metadata.finalizers[") and text.endswith("name nor is it fully qualified"):
        return True
    return text.startswith(("metadata.name: ", "metadata.generateName: ")) and name in FREER_NAMES


@needs("data/k8s-serialized-objects")
def test_verdicts_are_kubectl_validates(tally: Callable[[str, int], None]) -> None:
    recorded: dict[str, list[str]] = orjson.loads(RECORDED.read_bytes())
    paths = [path for path in sorted(FOLDER.iterdir()) if path.suffix in (".json", ".yaml")]
    paths = [path for path in paths if path.name in recorded]
    known = DocumentSet({key: load(path) for key, path in documents("1.35").items()})
    validator = Validator(known, release="1.34")  # kubectl-validate 0.0.4 is built of no later one
    wrong, different = [], 0
    for path in paths:
        report = validator.validate(path.read_bytes(), f"application/{path.suffix[1:]}")
        theirs, name = recorded[path.name], path.stem.rpartition(".")[2]
        if name in DIFFERENT:
            different += 1
            assert report.is_valid
            assert theirs
            continue
        texts = {each.message for each in report.violations} ^ set(theirs)
        wrong += [f"{path.name}: {text}" for text in texts if not is_explained(text, name)]
        if report.is_valid is bool(theirs):
            wrong.append(f"{path.name}: another verdict")
    tally("serialized objects, compared with kubectl-validate", len(paths))
    tally("serialized objects, another verdict, explained", different)
    assert len(paths) == len(recorded)
    assert not wrong, "\n".join(wrong)


def test_verdicts_on_generated_objects_are_kubectl_validates(tally: Callable[[str, int], None]) -> None:
    """By built-in documents; ``record_kubectl_validate.py`` records them. kubectl-validate writes defaults
    first, such as the ``{}`` of an absent object, and judges what is in them."""
    kinds = DocumentSet(documents_of("1.35"))
    validator = Validator(kinds, release="1.34")
    recorded = orjson.loads(read(RECORDED.with_name("kubectl-validate-generated.json.gz")))
    wrong, same = [], 0
    for value, said in recorded:
        ours = {each.message for each in validator.validate(orjson.dumps(value)).violations}
        theirs = set(said)
        group, _, version = value["apiVersion"].rpartition("/")
        kind = kinds.find(GroupVersionKind(group, version, value["kind"]))
        assert kind is not None
        same += ours == theirs
        wrong += [f"{value}: {text}" for text in theirs - ours if not is_absent(value, text, above=True)]
        defaults = {text for text in ours - theirs if is_absent(value, text)}
        wrong += [f"{value}: {text}" for text in ours - theirs - defaults]
        wrong += [f"{value}: {text}" for text in defaults if not has_default(kind, text)]
    tally("generated objects, compared with kubectl-validate", len(recorded))
    tally("generated objects, of them the same texts", same)
    assert same > 300
    assert not wrong, "\n".join(wrong[:20])


def required(text: str) -> list[str]:
    """The path of a field that is said to be required; lists are left out."""
    field, _, said = text.partition(": ")
    return re.sub(r"\[\d+\]", "", field).split(".") if said == "Required value" else []


def is_absent(value: Any, text: str, *, above: bool = False) -> bool:
    """Whether the field, or else what it is in, is absent."""
    for name in required(text)[: -1 if above else None]:
        value = value[0] if isinstance(value, list) else value
        if name not in value:
            return True
        value = value[name]
    return False


def has_default(kind: KindSchema, text: str) -> bool:
    schemas, schema = kind.document["components"]["schemas"], dict(kind.schema)
    for name in required(text):
        schema = schema.get("items", schema)
        for reference in schema.get("allOf", [schema]):
            schema = schemas.get(reference.get("$ref", "").rpartition("/")[2], schema)
        schema = schema["properties"][name]
    return "default" in schema
