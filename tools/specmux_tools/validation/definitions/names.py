"""Checks the names of a definition: its own, its group, its scope, and those of its kind and resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from specmux_converters.go.text import quoted
from specmux_converters.json_values import array, mapping, text
from specmux_tools.validation.definitions.definition_fault import DefinitionFault, fault
from specmux_tools.validation.metadata.names import (
    label_1035_faults,
    subdomain_faults,
    without_trailing_dash,
)

_SCOPES: Final = ("Cluster", "Namespaced")
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_APPROVAL: Final = "api-approved.kubernetes.io"
_KEP: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_ANY_CASE: Final = "may have mixed case, but should otherwise match: "


def metadata_faults(
    manifest: Mapping[str, Any], spec: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> Iterator[DefinitionFault]:
    """An update cannot change the name and may keep an invalid approval."""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    if old is not None:
        before = old.get("metadata")
        is_left = _approval_state(before if isinstance(before, Mapping) else {}) == _approval_state(metadata)
        yield from () if is_left else _approval_faults(metadata, text(spec.get("group")))
        return
    prefix, name = text(metadata.get("generateName")), text(metadata.get("name"))
    names = spec.get("names")
    wanted = f"{text(mapping(names).get('plural'))}.{text(spec.get('group'))}"
    checks = (("generateName", prefix, without_trailing_dash(prefix)), ("name", name, name))
    for key, value, checked in checks:
        faults = subdomain_faults(checked) if value else []
        if value and value != wanted:
            faults.append('must be spec.names.plural+"."+spec.group')
        for each in faults:
            yield fault(("metadata", key), f"Invalid value: {quoted(value)}: {each}")
    if not name and not prefix:
        yield fault(("metadata", "name"), "Required value: name or generateName is required")
    yield from _approval_faults(metadata, text(spec.get("group")))


def _approval_faults(metadata: Mapping[str, Any], group: str) -> Iterator[DefinitionFault]:
    """Groups of Kubernetes itself need an approval, or a statement that they have none."""
    if not any(group == each or group.endswith(f".{each}") for each in _PROTECTED):
        return
    approval = _approval(metadata)
    path = ("metadata", "annotations", _APPROVAL)
    place = f"metadata.annotations[{_APPROVAL}]"
    words = f"protected groups must have approval annotation {quoted(_APPROVAL)}"
    if not approval:
        yield DefinitionFault(path, f"{place}: Required value: {words}, {_KEP}")
    elif not approval.startswith("unapproved") and not _is_url(approval):
        words = f'{words} with either a URL or a reason starting with "unapproved", {_KEP}'
        yield DefinitionFault(path, f"{place}: Invalid value: {quoted(approval)}: {words}")


def _approval(metadata: Mapping[str, Any]) -> str:
    annotations = metadata.get("annotations")
    return text(mapping(annotations).get(_APPROVAL))


def _approval_state(metadata: Mapping[str, Any]) -> str:
    approval = _approval(metadata)
    if not approval:
        return "missing"
    return "bypassed" if approval.startswith("unapproved") else "approved" if _is_url(approval) else "invalid"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


def spec_name_faults(spec: Mapping[str, Any]) -> Iterator[DefinitionFault]:
    group, scope = text(spec.get("group")), text(spec.get("scope"))
    faults = subdomain_faults(group)
    if not group:
        yield fault(("spec", "group"), "Required value")
    elif faults or "." not in group:
        words = ",".join(faults) or "should be a domain with at least one dot"
        yield fault(("spec", "group"), f"Invalid value: {quoted(group)}: {words}")
    if not scope:
        yield fault(("spec", "scope"), "Required value")
    elif scope not in _SCOPES:
        choices = ", ".join(map(quoted, _SCOPES))
        yield fault(("spec", "scope"), f"Unsupported value: {quoted(scope)}: supported values: {choices}")


def name_faults(names: Mapping[str, Any]) -> Iterator[DefinitionFault]:
    """``singular`` and ``listKind`` default to names derived from the kind."""
    kind = text(names.get("kind"))
    list_kind = text(names.get("listKind")) or (f"{kind}List" if kind else "")
    values = {
        "plural": text(names.get("plural")),
        "singular": text(names.get("singular")) or kind.lower(),
        "kind": kind,
        "listKind": list_kind,
    }
    for key, value in values.items():
        if not value:
            yield fault(("spec", "names", key), "Required value")
    for key, value in values.items():
        is_kind = key in ("kind", "listKind")
        faults = label_1035_faults(value.lower() if is_kind else value) if value else []
        if faults:
            words = _ANY_CASE * is_kind + ",".join(faults)
            yield fault(("spec", "names", key), f"Invalid value: {quoted(value)}: {words}")
    yield from _label_faults(names, "shortNames")
    if kind and kind == list_kind:
        words = "kind and listKind may not be the same"
        yield fault(("spec", "names", "listKind"), f"Invalid value: {quoted(kind)}: {words}")
    yield from _label_faults(names, "categories")


def _label_faults(names: Mapping[str, Any], key: str) -> Iterator[DefinitionFault]:
    for index, value in enumerate(array(names.get(key))):
        text = value if isinstance(value, str) else ""
        faults = label_1035_faults(text)
        if faults:
            words = ",".join(faults)
            yield fault(("spec", "names", key, index), f"Invalid value: {quoted(text)}: {words}")
