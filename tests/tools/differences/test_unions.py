"""Changes of unions that ``x-kubernetes-unions`` declares."""

from __future__ import annotations

from typing import Any

import pytest

from data.compared import compared_documents, compared_specs, document, told


def spec(*unions: Any) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in ("type", "kind", "a", "b", "c")}
    return {"type": "object", "properties": properties, "x-kubernetes-unions": list(unions)}


def by(discriminator: str, **members: str) -> dict[str, Any]:
    return {"discriminator": discriminator, "fields-to-discriminateBy": members}


@pytest.mark.parametrize(
    ("old", "new", "enforced", "described"),
    [
        ([], [by("type", a="A")], ("union-added", "warning"), ("union-added", "notice")),
        ([by("type", a="A")], [], ("union-removed", "notice"), ("union-removed", "notice")),
        (
            [by("type", a="A", b="B")],
            [by("type", a="A", b="B", c="C")],
            ("union-member-added", "warning"),
            ("union-member-added", "notice"),
        ),
        (
            [by("type", a="A", b="B")],
            [by("type", a="A")],
            ("union-member-removed", "breaking"),
            ("union-member-removed", "warning"),
        ),
        (
            [by("type", a="A", b="B")],
            [by("type", a="A", b="Bee")],
            ("union-member-changed", "breaking"),
            ("union-member-changed", "warning"),
        ),
        (
            [by("type", a="A", b="B")],
            [by("kind", a="A", b="B")],
            ("union-discriminator-changed", "breaking"),
            ("union-discriminator-changed", "warning"),
        ),
    ],
)
def test_changes(old: Any, new: Any, enforced: tuple[str, str], described: tuple[str, str]) -> None:
    found = told(compared_specs(spec(*old), spec(*new)))
    assert found == [(enforced[0], "spec", enforced[1])]
    found = told(compared_documents(document(spec(*old)), document(spec(*new))))
    assert found == [(described[0], "spec", described[1])]


def test_the_order_of_unions_and_members_is_no_change() -> None:
    first, second = by("type", a="A", b="B"), {"fields": ["c"]}
    other = by("type", b="B", a="A")
    assert told(compared_specs(spec(first, second), spec(second, other))) == []
