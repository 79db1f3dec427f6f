"""The interface of an origin: what is asked of whoever has a backend's documents."""

from __future__ import annotations

from typing import Protocol

from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.origins.outcome import Outcome
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_converters.group_versions import GroupVersion


class Origin(Protocol):
    """One backend as the refresh loop and the fill see it. Failures are values."""

    async def observe(self, last: Observation) -> Outcome:
        """What the backend offers, compared with ``last``, which the caller still holds the bodies of."""
        ...

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """The bytes of a native document."""
        ...

    async def close(self) -> None: ...
