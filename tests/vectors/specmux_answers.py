"""specmux as an implementation that ``specmux conformance --vectors`` judges: lines of JSON in and out."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import orjson

from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters.codecs import protobuf_v3
from specmux_converters.crd import AS_DEFINED, build
from specmux_converters.errors import ConverterError
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.go.text import Number
from specmux_converters.group_versions import GroupVersion
from specmux_converters.references import reference_to, schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet, KindSchema
from specmux_tools.unions import Member, Union, UnionConflict, normalize_apply, normalize_update
from specmux_tools.validation import Check, Directive, Severity, ValidationReport, Validator
from specmux_tools.validation.decoding.body import read
from specmux_tools.validation.decoding.streams import parts_of
from specmux_tools.validation.definitions.faults import definition_faults
from specmux_tools.validation.errors import PatchError, Undecodable
from specmux_tools.validation.metadata.object_metadata import metadata_errors
from specmux_tools.validation.patching.json_patch import apply_json_patch
from specmux_tools.validation.patching.patch_schemas import PatchSchema
from specmux_tools.validation.patching.server_side_apply import (
    ApplyTypes,
    faults_text,
    merge_applied,
    type_faults,
)
from specmux_tools.validation.patching.strategic_merge import strategic_merge
from specmux_tools.validation.rules.checking import MISSING, check_rules
from specmux_tools.validation.rules.compiled_rule import RuleCompiler
from specmux_tools.validation.rules.rule_tree import rule_tree
from specmux_tools.validation.schema.scalars import RFC3339_MICRO, base64_fault, quantity_fault, time_fault

HEAD: Final = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
SCALARS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "quantity": quantity_fault,
    "bytes": base64_fault,
    "time": time_fault,
    "microtime": lambda text: time_fault(text, RFC3339_MICRO),
}
_JUDGED: Final = {Check.SCHEMA, Check.METADATA, Check.LIST, Check.RULE}


def answer(task: str, release: str | None, asked: dict[str, Any]) -> dict[str, Any]:
    match task:
        case "validate":
            return verdict(errors(report_of(asked, release, Directive.IGNORE)))
        case "decode":
            report = report_of(asked, release, Directive.STRICT)
            return verdict([report.fatal] if report.fatal is not None else report.strict_errors)
        case "rule":
            return judged_rule(asked)
        case "define":
            return verdict(each.text for each in definition_faults(asked["definition"], old=asked.get("old")))
        case "metadata":
            return verdict(each.text for each in metadata_errors(asked["metadata"]))
        case "scalar":
            fault = SCALARS[asked["type"]](asked["text"])
            return verdict([] if fault is None else [fault])
        case "parse":
            return parsed(asked["text"])
        case "encode":
            return {"output": base64.b64encode(protobuf_v3.encode(asked["document"])).decode()}
        case "convert":
            try:
                return {"output": convert_whole(asked["document"], profile="kubernetes").document}
            except ConverterError as error:
                return verdict([str(error)])
        case "union":
            return normalized(asked)
        case "json-patch" | "strategic-merge" | "apply":
            return patched(task, release, asked)
    return {"skipped": "no such task"}


def verdict(texts: Iterable[str]) -> dict[str, Any]:
    told = sorted(set(texts))
    return {"verdict": "invalid" if told else "valid", "errors": told}


def errors(report: ValidationReport) -> list[str]:
    if report.fatal is not None:
        return [report.fatal]
    found = (each for each in report.violations if each.severity is Severity.ERROR)
    return [each.message for each in found if each.check in _JUDGED]


def report_of(asked: dict[str, Any], release: str | None, directive: Directive) -> ValidationReport:
    judge = (
        custom(
            orjson.dumps(asked["schema"]),
            release,
            asked.get("preserveUnknownFields", False),
            asked.get("ratchets", True),
        )
        if "schema" in asked
        else built_in(release)
    )
    if "body" not in asked:
        return judge.validate(orjson.dumps(asked["object"]), directive=directive, old=asked.get("old"))
    body = asked["body"]
    data = (
        base64.b64decode(body["base64"])
        if "base64" in body
        else body["text"].encode("utf-8", "surrogatepass")
    )
    kind = GroupVersionKind("example.com", "v1", "Widget") if "schema" in asked else None
    return judge.validate(data, body["mediaType"], directive, kind=kind)


@cache
def documents(release: str) -> DocumentSet:
    found = built_in_releases()
    return DocumentSet({key: found.document(release, key) for key in found.group_versions(release)})


@cache
def built_in(release: str) -> Validator:
    return Validator(documents(release), release=release)


@cache
def custom(schema: bytes, release: str | None, preserves: bool, ratchets: bool) -> Validator:
    names = {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": orjson.loads(schema)}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    built = build([{**head, "metadata": {"name": "widgets.example.com"}, "spec": spec}], templates=AS_DEFINED)
    preserving = [GroupVersionKind("example.com", "v1", "Widget")] if preserves else []
    return Validator(DocumentSet(built.documents), preserving=preserving, release=release, ratchets=ratchets)


def judged_rule(asked: dict[str, Any]) -> dict[str, Any]:
    spec = {**asked["schema"], "x-kubernetes-validations": [asked["rule"]]}
    tree, compiler = rule_tree({"type": "object", "properties": {"spec": spec}}, {}), RuleCompiler()
    (rule,) = compiler.rules(tree.properties["spec"])
    if faults := [each for each in (rule.fault, rule.message_fault) if each]:
        return {"verdict": "refused", "errors": faults}
    old = {**HEAD, "spec": asked["old"]} if "old" in asked else MISSING
    found = check_rules({**HEAD, "spec": asked["value"]}, tree, compiler, old)
    return verdict(each.message for each in found if each.check is Check.RULE)


def parsed(text: str) -> dict[str, Any]:
    try:
        return {"output": [plain(read(part.data, part.format).value) for part in parts_of(text.encode())]}
    except Undecodable as error:
        return verdict([error.text])


def plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case Number():
            return float(value)
    return value


def normalized(asked: dict[str, Any]) -> dict[str, Any]:
    unions = tuple(
        Union(
            members=tuple(Member(each["fieldName"], each["discriminatorValue"]) for each in entry["fields"]),
            discriminator=entry.get("discriminator"),
            deduces=entry.get("deduceInvalidDiscriminator", False),
        )
        for entry in asked["schema"]["types"][0]["map"]["unions"]
    )
    normalize = normalize_apply if asked["mode"] == "apply" else normalize_update
    try:
        return {"output": normalize(unions, asked["old"], asked["new"])}
    except UnionConflict as conflict:
        return verdict([conflict.text])


def patched(task: str, release: str | None, asked: dict[str, Any]) -> dict[str, Any]:
    old, patch = asked.get("old"), asked["patch"]
    try:
        if task == "json-patch":
            return {"output": apply_json_patch(old, patch)}
        if task == "strategic-merge":
            found = described(release, asked["apiVersion"], asked["kind"])
            schema = PatchSchema(schemas_of(found.document), {"$ref": reference_to(found.component)})
            return {"output": strategic_merge(old, patch, schema)}
    except PatchError as error:
        return verdict([error.text])
    found = described(release, patch["apiVersion"], patch["kind"])
    types = apply_types(release, found.group_version)
    for value, is_live in ((patch, False), (old, True)):
        if value is not None and (
            faults := type_faults(types, found.component, value, allows_duplicates=is_live)
        ):
            return verdict([faults_text(faults)])
    return {"output": patch if old is None else merge_applied(types, found.component, old, patch)}


def described(release: str | None, api_version: str, kind: str) -> KindSchema:
    group, slash, version = api_version.partition("/")
    found = documents(release or "").find(GroupVersionKind(group if slash else "", version or group, kind))
    assert found is not None
    return found


@cache
def apply_types(release: str, group_version: GroupVersion) -> ApplyTypes:
    return ApplyTypes(documents(release).documents[group_version])


def main() -> None:
    for line in sys.stdin.buffer:
        case = orjson.loads(line)
        told = answer(case["task"], case["release"], case["input"])
        sys.stdout.buffer.write(orjson.dumps({"id": case["id"], **told}) + b"\n")


if __name__ == "__main__":
    main()
