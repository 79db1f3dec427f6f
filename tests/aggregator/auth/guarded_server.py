"""A server in mode kubernetes, guarded by a reviewer of the tests, and those who ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from deadline import DEADLINE
from fakes.reviewer import FakeReviewer
from running.serving import Running, eventually, request, running
from specmux_aggregator.auth.guard import RequestGuard, gate_of
from specmux_aggregator.auth.kubernetes import KubernetesAuthenticator
from specmux_aggregator.config.settings import AuthSettings, PollingSettings, Settings
from specmux_aggregator.metrics.instruments import Metrics

on_both_tiers = pytest.mark.parametrize("tier", ["parsed", "memoised"])

ALICE = "Authorization: Bearer alice-token"
BOB = "Authorization: Bearer bob-token"
POLLING = PollingSettings(connect_timeout=DEADLINE, idle_timeout=DEADLINE, total_timeout=DEADLINE)


class Guarded:
    """A guarded server, and what is behind its gate."""

    def __init__(self, server: Running, gate: RequestGuard, metrics: Metrics) -> None:
        self.server = server
        self.gate = gate
        self.metrics = metrics

    @property
    def cluster(self) -> KubernetesAuthenticator:
        assert isinstance(self.gate._authority, KubernetesAuthenticator)
        return self.gate._authority

    def ask(self, *fields: str, target: str = "/a", **more: Any) -> bytes:
        return self.server.exchange(request(target, *fields, close=True, **more))

    def refusals(self, reason: str) -> float:
        value = self.metrics.registry.get_sample_value("specmux_auth_refusals_total", {"reason": reason})
        assert value is not None
        return value


@contextmanager
def guarded(
    fake: FakeReviewer,
    tier: str = "parsed",
    *,
    polling: PollingSettings = POLLING,
    is_proven: bool = True,
    service: Any = None,
    **auth: Any,
) -> Iterator[Guarded]:
    metrics = Metrics(CollectorRegistry())
    settings = Settings(auth=AuthSettings(mode="kubernetes", **auth), polling=polling)
    gate = gate_of(settings, metrics, cluster=fake.backend)
    assert gate is not None
    with running(tier, service, gate=gate) as server:
        if is_proven:
            eventually(lambda: gate.complaint() is None)
        yield Guarded(server, gate, metrics)


def refused(answer: bytes, status: int, reason: str) -> dict[str, Any]:
    """The Status of a refusal, after a look at its form."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"\r\nCache-Control: no-store" in head
    found = orjson.loads(body)
    assert (found["kind"], found["code"], found["reason"]) == ("Status", status, reason)
    return dict(found)
