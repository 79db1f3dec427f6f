"""Short names of Kubernetes' own kinds, where only documents tell of them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from specmux_aggregator.http.messages import Coding
from specmux_aggregator.workers.documents import resources_in
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion


def listing(group: str, plural: str, kind: str) -> dict[str, Any]:
    named = {"group": group, "version": "v1", "kind": kind}
    return {"get": {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": named}}


@pytest.mark.parametrize(
    ("group", "plural", "kind", "short"),
    [
        ("apps", "deployments", "Deployment", ("deploy",)),
        ("", "services", "Service", ("svc",)),
        ("example.com", "deployments", "Deployment", ()),
        ("batch", "jobs", "Job", ()),
    ],
)
def test_short_names_are_those_of_the_apiserver(
    group: str, plural: str, kind: str, short: tuple[str, ...]
) -> None:
    key = GroupVersion(f"apis/{group}/v1" if group else "api/v1")
    document = {"openapi": "3.0.0", "info": {}, "paths": {f"/{key}/{plural}": listing(group, plural, kind)}}
    found = resources_in(orjson.dumps(document), Coding.IDENTITY, key, limits=DEFAULT_LIMITS)
    assert isinstance(found, tuple)
    assert [(each.name, each.singular, each.short_names) for each in found] == [(plural, kind.lower(), short)]
