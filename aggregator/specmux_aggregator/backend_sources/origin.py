"""The interface of an origin."""

from __future__ import annotations

from typing import Protocol

from specmux_aggregator.backend_sources.outcome import Outcome
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.upstream.client import MovedDocument, Payload
from specmux_converters.group_versions import GroupVersion


class Origin(Protocol):
    """A backend as seen by its refresher and by the repository. Failures are values."""

    async def observe(self, last: Observation) -> Outcome:
        """The offers of the backend, compared with ``last``, of which the caller still has the bodies."""
        ...

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | MovedDocument | Failure:
        """The bytes of a native document."""
        ...

    async def close(self) -> None: ...
