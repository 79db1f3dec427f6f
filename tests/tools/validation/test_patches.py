"""Patches: applied as Go applies them, and refused in an apiserver's words.

The answers were recorded by ``tests/benchmarks/go/patches`` with Kubernetes 0.37.2, those of strategic merges
and of what is applied for random objects of built-in kinds of release 1.35. What depends on the order of Go's
maps, and what panics there, was left out.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakes.widgets import DEFINITION, widget
from shared_data import DATA, read
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters.codecs.object_cbor import encode_object
from specmux_converters.crd import build
from specmux_converters.references import reference_to, schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.kinds import DocumentSet, KindSchema
from specmux_tools.validation import Check, Directive, UnsupportedMediaType, ValidationReport, Validator
from specmux_tools.validation.errors import PatchError
from specmux_tools.validation.messages import report_warnings, status_of
from specmux_tools.validation.patching.json_patch import MOST_COPIED, apply_json_patch
from specmux_tools.validation.patching.patch_schemas import PatchSchema
from specmux_tools.validation.patching.server_side_apply import (
    ApplyTypes,
    faults_text,
    merge_applied,
    type_faults,
)
from specmux_tools.validation.patching.strategic_merge import strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
UNMARSHAL = "error decoding patch: json: cannot unmarshal"
NO_NODE = "did not find expected node content"
RECORDED = Path(__file__).parent / "recorded"
V3 = DATA / "k8s-pairs" / "1.35" / "v3"


def recorded(name: str) -> Iterator[dict[str, Any]]:
    return map(orjson.loads, gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines())


@cache
def documents() -> DocumentSet:
    paths = V3.glob("*/**/*.json.gz")
    return DocumentSet({_key(path): orjson.loads(read(path)) for path in paths})  # type: ignore[misc]


def _key(path: Path) -> str:
    return path.relative_to(V3).as_posix().removesuffix(".json.gz")


@cache
def described(api_version: str, kind: str) -> KindSchema:
    group, slash, version = api_version.partition("/")
    found = documents().find(GroupVersionKind(group if slash else "", version or group, kind))
    assert found is not None
    return found


@cache
def apply_types(group_version: str) -> ApplyTypes:
    return ApplyTypes(documents().documents[group_version])  # type: ignore[index]


def text(answer: Any) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SORT_KEYS)


def test_strategic_merges_are_those_of_apimachinery(tally: Callable[[str, int], None]) -> None:
    wrong, count = [], 0
    for case in recorded("strategic-merge"):
        count += 1
        found = described(case["apiVersion"], case["kind"])
        schema = PatchSchema(schemas_of(found.document), {"$ref": reference_to(found.component)})
        asked = text(case)
        try:
            answer = {"result": strategic_merge(case["old"], case["patch"], schema)}
        except PatchError as error:
            answer = {"error": error.text}
        if text(answer) != text(case["answer"] or {"result": {}}):
            wrong.append(f"{answer} of {asked.decode()}")
    tally("strategic merges recorded from apimachinery", count)
    assert count >= 500
    assert not wrong, "\n".join(wrong[:5])


def test_what_is_applied_is_typed_and_merged_as_by_structured_merge_diff(
    tally: Callable[[str, int], None],
) -> None:
    wrong, count = [], 0
    for case in recorded("apply"):
        count += 1
        applied, old = case["apply"], case.get("old")
        found = described(applied["apiVersion"], applied["kind"])
        types = apply_types(found.group_version)
        answer = applied_answer(types, found.component, applied, old)
        if text(answer) != text(case["answer"]):
            wrong.append(f"{answer} of {case}")
    tally("applied objects recorded from structured-merge-diff", count)
    assert count >= 500
    assert not wrong, "\n".join(wrong[:5])


def applied_answer(types: ApplyTypes, component: str, applied: Any, old: Any) -> dict[str, Any]:
    faults = type_faults(types, component, applied)
    if faults:
        return {"error": faults_text(faults)}
    if old is None:
        return {"result": applied}
    faults = type_faults(types, component, old, allows_duplicates=True)
    if faults:
        return {"error": f"live: {faults_text(faults)}"}
    return {"result": merge_applied(types, component, old, applied)}


def test_json_patches_are_those_of_the_library_that_apiservers_use(tally: Callable[[str, int], None]) -> None:
    wrong, count = [], 0
    for case in recorded("json-patch"):
        count += 1
        asked = text(case)
        try:
            answer = {"result": apply_json_patch(case["old"], orjson.loads(case["json"]))}
        except PatchError as error:
            answer = {"error": error.text}
        if text(answer) != text(case["answer"]):
            wrong.append(f"{answer} of {asked.decode()}")
    tally("JSON patches recorded from json-patch", count)
    assert count >= 500
    assert not wrong, "\n".join(wrong[:5])


def test_copies_that_grow_without_bound_are_refused() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(200)]
    with pytest.raises(PatchError, match=f"exceeding the limit {MOST_COPIED}"):
        apply_json_patch({"a": ["x" * 100]}, doubling)


@cache
def validator() -> Validator:
    return Validator(documents())


CUSTOM = Validator(DocumentSet(build([DEFINITION]).documents))
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}


def patched(old: Any, patch: Any, media_type: str, **options: Any) -> ValidationReport:
    body = patch if isinstance(patch, bytes) else orjson.dumps(patch)
    judge = CUSTOM if "example.com" in str(old or patch) else validator()
    return judge.patch(old, body, media_type, **options)


def refusal(report: ValidationReport) -> tuple[int, str]:
    status = status_of(report)
    assert status is not None
    return status["code"], status["message"]


def test_a_patch_is_judged_as_the_update_that_it_makes() -> None:
    old = widget({"size": 12, "unit": "m"})
    assert patched(old, {"spec": {"size": 12}}, MERGE_PATCH).is_valid  # as it is stored
    code, message = refusal(patched(old, {"spec": {"size": 11, "unit": "s"}}, MERGE_PATCH))
    assert code == 422
    assert "should be less than or equal to 9" in message
    rules = patched(widget({"size": 2}), [{"op": "replace", "path": "/spec/size", "value": 1}], JSON_PATCH)
    assert "may only grow" in refusal(rules)[1]


def test_strict_errors_of_the_patch_come_before_those_of_the_object() -> None:
    unknown = b'{"op":"add","path":"/spec/siez","value":1,"fooo":1}'
    patch = b'[%s,{"op":"add","op":"add","path":"/spec/size","value":1}]' % unknown
    strict = patched(widget({"size": 1}), patch, JSON_PATCH)
    code, message = refusal(strict)
    assert code == 422
    assert message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert message.endswith(
        'strict decoding error: json patch unknown field "[0].fooo", json patch duplicate field "[1].op", '
        'unknown field "spec.siez"'
    )
    warned = patched(widget({"size": 1}), patch, JSON_PATCH, directive=Directive.WARN)
    assert warned.is_valid
    assert report_warnings(warned)[0] == 'json patch unknown field "[0].fooo"'
    assert patched(widget({"size": 1}), patch, JSON_PATCH, directive=Directive.IGNORE).violations == ()


@pytest.mark.parametrize(
    ("patch", "media_type", "expected"),
    [
        (b"{", MERGE_PATCH, (400, "invalid JSON patch")),
        (
            b"[1]",
            MERGE_PATCH,
            (400, f"{UNMARSHAL} array into Go value of type map[string]interface {{}}"),
        ),
        (
            b"{}",
            JSON_PATCH,
            (400, f"{UNMARSHAL} object into Go value of type []handlers.jsonPatchOp"),
        ),
        (
            b'[{"op":"test","path":"/spec/size","value":3}]',
            JSON_PATCH,
            (422, "the server rejected our request due to an error in our request"),
        ),
        (
            b'{"metadata":{"name":"b"}}',
            MERGE_PATCH,
            (400, "the name of the object (b) does not match the name on the URL (a)"),
        ),
        (
            b"{}",
            STRATEGIC_PATCH,
            (
                415,
                "the body of the request was in an unknown format - accepted media types include: "
                f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}",
            ),
        ),
        (b"a: [", APPLY_PATCH, (400, f"error encoding patch: yaml: line 1: {NO_NODE}")),
    ],
)  # fmt: skip
def test_patches_are_refused_in_the_words_of_an_apiserver(
    patch: bytes, media_type: str, expected: tuple[int, str]
) -> None:
    assert refusal(patched(widget({"size": 1}), patch, media_type)) == expected


def test_people_are_told_why_a_json_patch_does_not_apply() -> None:
    report = patched(widget({}), [{"op": "test", "path": "/spec/size", "value": 3}], JSON_PATCH)
    assert [each.message for each in report.violations] == ["testing value /spec/size failed: test failed"]


def test_a_strategic_merge_is_converted_strictly() -> None:
    old = {**CONFIG, "data": {"a": "1"}}
    patch = b'{"data":{"b":"2","b":"3"},"zzz":1,"aaa":{"x":1}}'
    code, message = refusal(patched(old, patch, STRATEGIC_PATCH))
    assert code == 422
    assert message == (
        ' "" is invalid: patch: Invalid value: "map[aaa:map[x:1] data:map[b:3] zzz:1]": '
        'strict decoding error: duplicate field "data.b", unknown field "aaa", unknown field "zzz"'
    )
    wrong = patched(old, {"data": {"a": 1}}, STRATEGIC_PATCH)
    assert refusal(wrong)[1].endswith("cannot convert int64 to string")


def test_another_uid_is_an_error_of_metadata_in_a_patch() -> None:
    report = patched(
        {**CONFIG, "metadata": {**CONFIG["metadata"], "uid": "1"}}, {"metadata": {"uid": "2"}}, MERGE_PATCH
    )  # type: ignore[dict-item]
    message = 'ConfigMap "c" is invalid: metadata.uid: Invalid value: "2": field is immutable'
    assert refusal(report) == (422, message)


def test_what_is_applied_is_typed() -> None:
    report = patched(None, {**CONFIG, "data": {"a": "1"}, "dota": {}}, APPLY_PATCH)
    place = "shop/c; /v1, Kind=ConfigMap"
    text = f"failed to create typed patch object ({place}): .dota: field not declared in schema"
    assert refusal(report) == (500, text)
    twice = patched(
        None, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: x, a: z}\n", APPLY_PATCH
    )
    assert refusal(twice) == (
        400,
        "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 4: key "a" already set in map',
    )
    assert twice.violations[0].check is Check.DUPLICATE_FIELD


def test_what_is_applied_is_judged_as_created_or_as_an_update() -> None:
    assert "less than or equal to 9" in refusal(patched(None, widget({"size": 12}), APPLY_PATCH))[1]
    old = widget({"size": 12, "unit": "m"})
    assert patched(old, widget({"size": 12}), APPLY_PATCH).is_valid
    assert "unit is immutable" in refusal(patched(old, widget({"unit": "s"}), APPLY_PATCH))[1]
    managed = {
        **old,
        "metadata": {**old["metadata"], "managedFields": [{"manager": "x", "operation": "Apply"}]},
    }
    report = patched(managed, widget({"size": 12}), APPLY_PATCH)
    assert (report.is_valid, report.is_complete) == (True, False)
    other = {**widget({}), "apiVersion": "example.com/v2"}
    text = "invalid object type: example.com/v1, Kind=Widget"
    assert refusal(patched(other, widget({}), APPLY_PATCH)) == (400, text)


def test_what_is_applied_has_no_managed_fields() -> None:
    report = patched(None, widget({}, managedFields=[]), APPLY_PATCH)
    assert refusal(report) == (400, "metadata.managedFields must be nil")


def test_what_is_applied_in_cbor_is_read_as_kubernetes_writes_it() -> None:
    media_type = "application/apply-patch+cbor"
    assert CUSTOM.patch(None, encode_object(widget({"size": 1})), media_type).is_valid
    report = CUSTOM.patch(None, encode_object(widget({"size": 12})), media_type)
    assert "less than or equal to 9" in refusal(report)[1]


def test_other_media_types_are_no_patches() -> None:
    with pytest.raises(UnsupportedMediaType, match="application/json: none of application/json-patch"):
        patched(widget({}), {}, "application/json")
    with pytest.raises(ValueError, match="needs a stored object"):
        CUSTOM.patch(None, b"{}", MERGE_PATCH)


def test_patches_that_nest_without_end_are_refused() -> None:
    deeper = [{"op": "move", "from": "/spec/a", "path": "/spec/b"}]
    deeper += [
        {"op": "add", "path": "/spec/a", "value": {}},
        {"op": "move", "from": "/spec/b", "path": "/spec/a/x"},
    ]
    report = patched(widget({"a": {}}), deeper * 400, JSON_PATCH)
    assert refusal(report) == (400, "the patched object is nested too deeply")
    copied = patched(
        widget({"a": {}}), [*deeper * 400, {"op": "copy", "from": "/spec", "path": "/x"}], JSON_PATCH
    )
    assert not copied.is_valid


def test_numbers_that_are_unusual_are_patched() -> None:
    old = orjson.loads(orjson.dumps(widget({"size": 1})))
    for body in (
        b'{"spec":{"size":1e0}}',
        b'{"spec":{"size":1,"unit":"m"},"metadata":{"generation":99999999999999999999}}',
    ):
        patched(old, body, MERGE_PATCH)
    copied = b'{"op":"copy","from":"/spec/x","path":"/spec/y"}'
    operations = b'[{"op":"add","path":"/spec/x","value":123456789012345678901},%s]' % copied
    report = patched(old, operations, JSON_PATCH, directive=Directive.IGNORE)
    assert report.is_valid, report


@pytest.mark.parametrize("is_described", [True, False])
@pytest.mark.parametrize(
    ("media_type", "patch", "wrong"),
    [
        (JSON_PATCH, [{"op": "replace", "path": "/spec/scope", "value": "Odd"}], "spec.scope"),
        (JSON_PATCH, [{"op": "add", "path": "/spec/names/shortNames", "value": ["w"]}], ""),
        (MERGE_PATCH, {"spec": {"versions": []}}, "spec.versions"),
        (MERGE_PATCH, {"metadata": {"labels": {"a": "b c"}}}, "metadata.labels"),
        (STRATEGIC_PATCH, {"spec": {"names": {"shortNames": ["w"]}}}, ""),
        (STRATEGIC_PATCH, {"spec": {"names": {"kind": None}}}, "spec.names.kind"),
        (STRATEGIC_PATCH, {"spec": {"versions": []}}, "spec.versions"),
        (APPLY_PATCH, {"spec": {"names": {"shortNames": ["w"]}}}, ""),
        (APPLY_PATCH, {"spec": {"scope": "Odd"}}, "spec.scope"),
    ],
)
def test_definitions_are_patched_with_their_document_and_without(
    media_type: str, patch: Any, wrong: str, is_described: bool
) -> None:
    """An apiserver has their types; without a document their fields are known from what is checked."""
    if media_type == APPLY_PATCH:
        head = {name: DEFINITION[name] for name in ("apiVersion", "kind")}
        patch = {**head, "metadata": {"name": DEFINITION["metadata"]["name"]}, **patch}
    judge = Validator(DocumentSet(definition_document() if is_described else {}))
    report = judge.patch(DEFINITION, orjson.dumps(patch), media_type)
    assert (report.is_update, report.is_complete) == (True, True)
    assert {each.message.partition(":")[0].partition("[")[0] for each in report.violations} - {
        "status.storedVersions"
    } == ({wrong} if wrong else set())


@cache
def definition_document() -> dict[str, Any]:
    name = "apis/apiextensions.k8s.io/v1"
    return {name: built_in_releases().document("1.37", name)}
