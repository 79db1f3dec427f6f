"""What only an apiserver can say: its health, and OIDC discovery for those who check its tokens."""

from __future__ import annotations

import pytest

from fakes.apiserver import document
from fakes.cluster import API_SERVICES, FakeCluster
from running.cluster_service import APPS, builtin, serves
from specmux_aggregator.config.settings import ProxySettings

PAGES = {
    "/healthz": b"ok",
    "/.well-known/openid-configuration": b'{"issuer":"https://kubernetes.default.svc"}',
    "/openid/v1/jwks": b'{"keys":[]}',
}


@pytest.mark.parametrize("is_on", [True, False])
async def test_pages_of_the_apiserver_are_relayed_with_resources(is_on: bool) -> None:
    async with FakeCluster({APPS: document(APPS)}) as cluster:
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        cluster.pages = dict(PAGES)
        async with serves(cluster, settings={"proxy": ProxySettings(resources=is_on)}) as client:
            for path, body in PAGES.items():
                status, _, answered = await client.get(f"{path}?verbose", Authorization="Bearer alice")
                assert (status, answered if is_on else b"") == ((200, body) if is_on else (404, b"")), path
            if is_on:
                asked = {seen.target: seen.headers.get("Authorization") for seen in cluster.requests}
                assert asked["/healthz?verbose"] == "Bearer alice"
