"""Losses beside the documents that they concern."""

from __future__ import annotations

from typing import Any

from specmux_aggregator.workers.losses import NAMED, losses_by_group_version
from specmux_converters.from_swagger2.conversion import Conversion, convert
from specmux_converters.group_versions import GroupVersion
from specmux_converters.losses import Grade, Loss

A, B = GroupVersion("apis/a.io/v1"), GroupVersion("apis/b.io/v1")


def conversion() -> Conversion:
    def operation(name: str) -> dict[str, Any]:
        schema = {"$ref": f"#/definitions/{name}"}
        return {"get": {"responses": {"200": {"description": "OK", "schema": schema}}}}

    return convert(
        {
            "swagger": "2.0",
            "info": {"title": "t", "version": "v1"},
            "paths": {"/apis/a.io/v1/x": operation("One"), "/apis/b.io/v1/x": operation("Two")},
            "definitions": {"One": {"type": "object"}, "Two": {"$ref": "#/definitions/One"}},
        }
    )


def counts(*losses: Loss) -> dict[GroupVersion, int]:
    found = losses_by_group_version(conversion().outlines, losses)
    return {group_version: of_one.count for group_version, of_one in found.items()}


def test_a_loss_of_a_path_is_its_documents() -> None:
    assert counts(Loss("/paths/~1apis~1a.io~1v1~1x/get", "c", "r")) == {A: 1, B: 0}


def test_a_loss_of_a_definition_is_that_of_each_document_that_has_it() -> None:
    assert counts(Loss("/definitions/One/x", "c", "r")) == {A: 1, B: 1}
    assert counts(Loss("/definitions/Two", "c", "r")) == {A: 0, B: 1}


def test_a_loss_of_what_all_share_is_that_of_all() -> None:
    assert counts(Loss("/securityDefinitions/x", "c", "r"), Loss("", "c", "r")) == {A: 2, B: 2}


def test_notes_are_no_losses() -> None:
    assert counts(Loss("/info", "c", "r", Grade.NOTE)) == {A: 0, B: 0}


def test_the_first_are_named_and_all_are_counted() -> None:
    losses = [Loss(f"/info/{number:02}", "c", "r") for number in range(2 * NAMED)]
    found = losses_by_group_version(conversion().outlines, [*losses, Loss("/definitions/One", "c", "r")])[A]
    assert found.count == 2 * NAMED + 1
    assert found.named == tuple(f"/info/{number:02}: c: r" for number in range(NAMED))
