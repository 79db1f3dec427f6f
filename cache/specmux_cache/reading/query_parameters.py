"""The query parameters that an operation accepts, as kubectl checks them, and its media types.

For parameters, the first PATCH of the kind decides, as in cli-runtime
(pkg/resource/query_param_verifier_v3.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_cache.reading.results import MediaTypes
from specmux_converters.group_versions import named_group_version, split
from specmux_converters.json_values import array, mapping, members
from specmux_converters.operations import GROUP_VERSION_KIND, operation_of
from specmux_converters.references import PREFIX, resolve_part, schemas_of

LIST_KIND: Final = ("", "v1", "List")
"""Not a resource: kubectl sends its items individually."""
SWAGGER_PARAMETERS: Final = "#/parameters/"
"""The only prefix that cli-runtime looks for, in Swagger and among components."""


def takes_parameter(document: Mapping[str, Any], group_version: str, kind: str, parameter: str) -> bool:
    """Whether PATCH of this kind accepts the query parameter. ``group_version``: a discovery key."""
    group, version = group_and_version(group_version)
    if (group, version, kind) == LIST_KIND:
        return False
    for _, item in members(document.get("paths")):
        operation = mapping(item.get("patch"))
        named = operation.get(GROUP_VERSION_KIND)
        if isinstance(named, dict) and [named.get(part) for part in ("group", "version", "kind")] == [
            group,
            version,
            kind,
        ]:
            return parameter in set(_query_parameters(document, item, operation))
    return False


def has_kind(document: Mapping[str, Any], group_version: str, kind: str) -> bool:
    """Whether an operation or a component of the document is of this kind."""
    group, version = group_and_version(group_version)
    wanted = {"group": group, "version": version, "kind": kind}
    if (group, version, kind) == LIST_KIND:
        return True
    return any(
        wanted == named or (isinstance(named, list) and wanted in named) for named in _named_kinds(document)
    )


def _named_kinds(document: Mapping[str, Any]) -> Iterator[Any]:
    for _, schema in members(schemas_of(document)):
        yield schema.get(GROUP_VERSION_KIND)
    for _, item in members(document.get("paths")):
        for _, operation in members(item):
            yield operation.get(GROUP_VERSION_KIND)


def media_types_of(
    document: Mapping[str, Any], group_version: str, kind: str, verb: str
) -> MediaTypes | None:
    """None if no operation of the kind has the verb."""
    operation = operation_of(dict(document), *group_and_version(group_version), kind, verb)
    return None if operation is None else MediaTypes(operation.consumes, operation.produces)


def request_name(group_version: str, kind: str, verb: str) -> str:
    """Equal for all spellings of a group-version."""
    return " ".join((*group_and_version(group_version), kind, verb))


def group_and_version(group_version: str) -> tuple[str, str]:
    """("apps", "v1") of ``apis/apps/v1`` or ``apps/v1``; ("", "v1") of ``api/v1`` or ``v1``."""
    return split(named_group_version(group_version)) or ("", group_version)


def _query_parameters(
    document: Mapping[str, Any], item: Mapping[str, Any], operation: Mapping[str, Any]
) -> Iterator[str]:
    for owner in (operation, item):
        for parameter in array(owner.get("parameters")):
            found = _resolve_parameter(document, parameter)
            if found.get("in") == "query" and isinstance(found.get("name"), str):
                yield found["name"]


def _resolve_parameter(document: Mapping[str, Any], parameter: Any) -> Mapping[str, Any]:
    reference = mapping(parameter).get("$ref")
    if isinstance(reference, str) and reference.startswith(SWAGGER_PARAMETERS):
        parameter = {"$ref": f"{PREFIX}parameters/{reference.removeprefix(SWAGGER_PARAMETERS)}"}
    return resolve_part(document, parameter)
