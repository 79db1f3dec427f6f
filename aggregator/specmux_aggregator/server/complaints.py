"""Lines in the log about malformed requests: a few a second, and how many more there were.

Every line costs what the request did, and whoever sends them decides how many there are.
"""

from __future__ import annotations

import logging
import time
from typing import Final

logger = logging.getLogger(__name__)

TOLD_MAX: Final = 10
"""Lines in a second."""


class AcceptComplaints:
    """Of one listener."""

    def __init__(self) -> None:
        self._began = float("-inf")
        self._told = 0
        self._left_out = 0

    def malformed(self, peer: object, reason: object) -> None:
        """``reason``: our own words, for a request can hold a credential."""
        now = time.monotonic()
        if now - self._began >= 1.0:
            if self._left_out:
                logger.info("%d more malformed requests were not logged", self._left_out)
            self._began, self._told, self._left_out = now, 0, 0
        if self._told < TOLD_MAX:
            self._told += 1
            logger.info("malformed request from %s: %s", peer, reason)
        else:
            self._left_out += 1
