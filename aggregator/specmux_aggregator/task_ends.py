"""Tasks that nobody waits for: a bug that ends one is logged at once, not when the task is collected."""

from __future__ import annotations

import asyncio
import logging
from typing import Any


def log_failure(task: asyncio.Task[Any], logger: logging.Logger, message: str) -> None:
    """Have ``message`` logged with the error that ``task`` ends with; a good end and a cancelled one are
    silent."""

    def tell(ended: asyncio.Task[Any]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            logger.error(message, exc_info=error)

    task.add_done_callback(tell)
