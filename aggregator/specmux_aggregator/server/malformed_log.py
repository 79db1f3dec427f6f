"""Log lines about malformed requests: a few a second, then a count of the rest.

Logging a line costs as much as handling such a request, and the sender decides how many there are.
"""

from __future__ import annotations

import logging
import time
from typing import Final

logger = logging.getLogger(__name__)

TOLD_MAX: Final = 10
"""Lines per second."""


class AcceptComplaints:
    """The complaints of one listener."""

    def __init__(self) -> None:
        self._began = float("-inf")
        self._told = 0
        self._left_out = 0

    def log_malformed(self, peer: object, reason: object) -> None:
        """``reason``: text of this package only, since a request can contain a credential."""
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
