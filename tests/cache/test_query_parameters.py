from __future__ import annotations

import pytest

from shared_data import documents, load
from specmux_cache.reading.query_parameters import group_and_version, takes_parameter

GVK = {"group": "apps", "version": "v1", "kind": "Deployment"}


def spec(operation, *, components=None, **item):
    return {
        "paths": {"/x": {"patch": {"x-kubernetes-group-version-kind": GVK, **operation}, **item}},
        "components": components,
    }


QUERY = {"name": "fieldValidation", "in": "query"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (spec({"parameters": [QUERY]}), True),
        (spec({}, parameters=[QUERY]), True),
        (spec({"parameters": [{"name": "fieldValidation", "in": "header"}]}), False),
        (spec({"parameters": [{"name": "dryRun", "in": "query"}]}), False),
        (
            spec(
                {"parameters": [{"$ref": "#/components/parameters/f"}]},
                components={"parameters": {"f": QUERY}},
            ),
            True,
        ),
        (
            spec(
                {"parameters": [{"$ref": "#/components/parameters/g"}]},
                components={"parameters": {"f": QUERY}},
            ),
            False,
        ),
        (spec({"parameters": [{"$ref": "#/parameters/f"}]}, components={"parameters": {"f": QUERY}}), True),
        (spec({"parameters": [{"$ref": "#/parameters/f"}, 5, None]}), False),
        (spec({"parameters": [{"$ref": "#/x/f"}]}, components={"parameters": {"f": QUERY}}), False),
        (spec({"parameters": None}), False),
        ({"paths": {"/x": None, "/y": {"patch": 5}}}, False),
        ({"paths": None}, False),
        ({}, False),
    ],
)
def test_takes_parameter_when_it_is_declared_in_every_way(document, expected):
    assert takes_parameter(document, "apis/apps/v1", "Deployment", "fieldValidation") is expected


@pytest.mark.parametrize(
    ("group_version", "expected"),
    [
        ("api/v1", ("", "v1")),
        ("v1", ("", "v1")),
        ("apis/apps/v1", ("apps", "v1")),
        ("apps/v1", ("apps", "v1")),
    ],
)
def test_group_and_version(group_version, expected):
    assert group_and_version(group_version) == expected


@pytest.mark.parametrize(
    ("release", "group_version", "kind", "expected"),
    [
        ("1.35", "apis/apps/v1", "Deployment", True),
        ("1.35", "api/v1", "Pod", True),
        ("1.35", "api/v1", "List", False),
        ("1.35", "api/v1", "Binding", False),
    ],
)
def test_takes_parameter_when_the_document_is_a_real_one(release, group_version, kind, expected):
    document = load(documents(release)[group_version])
    assert takes_parameter(document, group_version, kind, "fieldValidation") is expected
