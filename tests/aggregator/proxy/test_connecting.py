"""How long a relayed request waits for its connection: longer than a poll does."""

from __future__ import annotations

import asyncio
import ssl
from types import MappingProxyType

import trustme
from prometheus_client import CollectorRegistry

from fakes.cluster import CRDS, FakeCluster
from fakes.freezable_way import FreezableWay
from running.cluster_service import port_of
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.proxy.exchanges import Exchanges, ProxyExchange
from specmux_aggregator.upstream.credentials import Identities
from specmux_cache.access.server_access import ServerTLS


async def test_relayed_request_waits_for_a_slow_handshake_and_a_poll_does_not() -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async with FakeCluster(tls=context) as cluster, FreezableWay(port_of(cluster)) as way:
        tls = ServerTLS(ca_data=authority.cert_pem.bytes())
        backend = Backend(name=BackendName("a"), url=way.url.replace("http:", "https:"), tls=tls)
        observations = MappingProxyType({backend.name: Observation(backend=backend)})
        snapshot = merge(observations, generation=1)
        exchanges = Exchanges(
            lambda: snapshot,
            Metrics(CollectorRegistry()),
            polling=PollingSettings(connect_timeout=0.2, idle_timeout=5.0, total_timeout=5.0),
            identities=Identities(),
        )
        try:
            way.freeze()
            begun = await exchanges.begin(backend, "GET", CRDS, [], is_ours=True)
            assert isinstance(begun, Failure)
            assert begun.cause is Cause.TIMEOUT
            asyncio.get_running_loop().call_later(0.6, way.thaw)
            begun = await exchanges.begin(backend, "GET", CRDS, [], is_ours=False)
            assert isinstance(begun, ProxyExchange), begun
            assert begun.answer.status == 200
            await begun.close()
        finally:
            await exchanges.close()
