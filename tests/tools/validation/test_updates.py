"""Updates: what an apiserver says of an object that replaces a stored one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakes.widgets import DEFINITION, widget
from specmux_converters.crd import build
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Check, Directive, Severity, UnionAlgorithm, ValidationReport, Validator
from specmux_tools.validation.messages import status_of
from specmux_tools.validation.stored_objects import StoredObjects

VALIDATOR = Validator(DocumentSet(build([DEFINITION]).documents))


def updated(old: dict[str, Any], new: dict[str, Any], **options: Any) -> ValidationReport:
    return VALIDATOR.update(old, orjson.dumps(new), **options)


def errors(report: ValidationReport) -> list[str]:
    return [each.message for each in report.violations if each.severity is Severity.ERROR]


def test_what_an_update_leaves_is_no_error_and_what_it_changes_is() -> None:
    assert not errors(updated(widget({"size": 12, "unit": "m"}), widget({"size": 12, "unit": "m"})))
    found = errors(updated(widget({"size": 12, "unit": "m"}), widget({"size": 13, "unit": "m"})))
    assert found == ["spec.size: Invalid value: 13: spec.size in body should be less than or equal to 9"]


def test_transition_rules_are_evaluated() -> None:
    found = errors(updated(widget({"size": 2, "unit": "m"}), widget({"size": 1, "unit": "s"})))
    assert [each.rpartition(": ")[2] for each in found] == ["may only grow", "unit is immutable"]
    assert not errors(VALIDATOR.validate(orjson.dumps(widget({"size": 1, "unit": "s"}))))


def test_another_name_is_refused_before_the_object_is_looked_at() -> None:
    report = updated(widget({"size": 1, "unit": "m"}), widget({"size": 10, "unit": "m"}, name="b"))
    status = status_of(report)
    assert status is not None
    text = "the name of the object (b) does not match the name on the URL (a)"
    assert (status["code"], status["reason"], status["message"]) == (400, "BadRequest", text)
    assert errors(report)[0] == text
    assert len(errors(report)) == 2  # all of it is shown to people


def test_another_namespace_is_refused() -> None:
    report = updated(widget({}), widget({}, namespace="other"))
    status = status_of(report)
    assert status is not None
    text = "the namespace of the provided object does not match the namespace sent on the request"
    assert (status["code"], status["message"]) == (400, text)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (
            "uid",
            "StorageError: invalid object, Code: 4, Key: /example.com/widgets/shop/a, ResourceVersion: 0,"
            " AdditionalErrorMsg: Precondition failed: UID in precondition: 2, UID in object meta: 1",
        ),
        (
            "resourceVersion",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ],
)
def test_another_object_of_the_name_is_a_conflict(field: str, text: str) -> None:
    report = updated(widget({}, **{field: "1"}), widget({}, **{field: "2"}))
    status = status_of(report)
    assert status is not None
    message = f'Operation cannot be fulfilled on widgets.example.com "a": {text}'
    assert (status["code"], status["reason"], status["message"]) == (409, "Conflict", message)
    assert len(errors(report)) == 1


def test_unknown_fields_are_told_before_another_name() -> None:
    report = updated(widget({}), widget({"siez": 1}, name="b"))
    status = status_of(report)
    assert status is not None
    assert status["message"].endswith('strict decoding error: unknown field "spec.siez"')
    lenient = status_of(updated(widget({}), widget({"siez": 1}, name="b"), directive=Directive.WARN))
    assert lenient is not None
    assert lenient["message"].startswith("the name of the object (b)")


def test_finalizers_of_an_object_that_is_deleted_cannot_be_added() -> None:
    old = widget({}, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a.com/x"])
    found = errors(updated(old, widget({}, finalizers=["a.com/x", "a.com/z", "a.com/y"])))
    assert found == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a.com/y", "a.com/z"}'
    ]
    assert not errors(updated(old, widget({}, finalizers=[])))


def test_a_deletion_cannot_be_written() -> None:
    found = errors(updated(widget({}), widget({}, deletionGracePeriodSeconds=30)))
    assert found == ["metadata.deletionGracePeriodSeconds: Invalid value: 30: field is immutable"]


def test_a_status_that_is_a_subresource_stays() -> None:
    old = {**widget({}), "status": {"size": 3}}
    assert not errors(updated(old, {**widget({}), "status": {"size": 12}}))
    assert not errors(updated(widget({}), {**widget({}), "status": {"size": 12}}))


UNION = {
    "components": {
        "schemas": {
            "io.example.v1.Gate": {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "type": {"type": "string"},
                    "a": {"type": "string"},
                    "b": {"type": "string"},
                },
                "x-kubernetes-unions": [
                    {"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}
                ],
                "x-kubernetes-group-version-kind": [{"group": "example.io", "version": "v1", "kind": "Gate"}],
            }
        }
    }
}


@pytest.mark.parametrize("algorithm", [UnionAlgorithm.SEED, UnionAlgorithm.LEGACY])
def test_a_union_that_is_left_as_it_is_stored_is_no_error(algorithm: UnionAlgorithm) -> None:
    validator = Validator(DocumentSet({"apis/example.io/v1": UNION}), unions=algorithm)  # type: ignore[dict-item]
    head = {"apiVersion": "example.io/v1", "kind": "Gate", "type": "A"}

    def found(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        report = validator.update({**head, **old}, orjson.dumps({**head, **new}))
        return [each.message for each in report.violations if each.check is Check.UNION]

    assert found({"a": "1"}, {"a": "1", "b": "1"})
    assert not found({"a": "1", "b": "1"}, {"a": "1", "b": "2"})


def test_objects_are_matched_by_group_kind_namespace_and_name() -> None:
    stored = StoredObjects(
        [
            {"kind": "List", "apiVersion": "v1", "items": [widget({"size": 5, "unit": "m"})]},
            widget({}, name="twice"),
            widget({}, name="twice"),
        ],
        "old.yaml",
    )
    smaller = orjson.dumps(widget({"size": 1, "unit": "m"}))
    assert "may only grow" in errors(VALIDATOR.validate_all(smaller, stored=stored)[0])[0]
    implied = widget({"size": 1, "unit": "m"})
    del implied["metadata"]["namespace"]
    assert VALIDATOR.validate_all(orjson.dumps(implied), stored=stored)[0].is_update
    new = VALIDATOR.validate_all(orjson.dumps(widget({}, name="new")), stored=stored)[0]
    assert (new.is_update, new.is_complete) == (False, True)
    twice = VALIDATOR.validate_all(orjson.dumps(widget({}, name="twice")), stored=stored)[0]
    assert not twice.is_complete
    assert twice.violations[-1].message.endswith("Widget shop/twice is in old.yaml 2 times")


def test_a_stored_object_of_another_version_is_said_not_to_be_compared() -> None:
    stored = StoredObjects([{**widget({}), "apiVersion": "example.com/v1beta1"}], "git:main:a.yaml")
    report = VALIDATOR.validate_all(orjson.dumps(widget({})), stored=stored)[0]
    assert not report.is_complete
    assert "stored as example.com/v1beta1 in git:main:a.yaml" in report.violations[-1].message


def test_where_updates_are_required_a_new_object_is_not_checked_in_full() -> None:
    stored = StoredObjects([], "old/", are_required=True)
    report = VALIDATOR.validate_all(orjson.dumps(widget({})), stored=stored)[0]
    assert not report.is_complete
    assert report.violations[-1].message == "the update was not checked: Widget shop/a is not in old/"


def test_unions_are_stored_normalized() -> None:
    documents = DocumentSet({"apis/example.io/v1": UNION})  # type: ignore[dict-item]
    validator = Validator(documents, unions=UnionAlgorithm.SEED, keeps_objects=True)
    head = {"apiVersion": "example.io/v1", "kind": "Gate"}
    old, new = {**head, "type": "A", "a": "1"}, {**head, "type": "B", "a": "1", "b": "2"}
    report = validator.update(old, orjson.dumps(new))
    assert report.is_valid
    assert report.stored == {**head, "type": "B", "b": "2"}
    assert Validator(documents).update(old, orjson.dumps(new)).stored is None
