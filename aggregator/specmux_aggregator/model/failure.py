"""Why a backend could not be used, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from specmux_aggregator.errors import NoWorker, WorkerFailed


class Cause(StrEnum):
    """Why a backend could not be used; also a metric label, so the set is closed."""

    REFUSED = "refused"
    UNRESOLVED = "unresolved"
    RESET = "reset"
    TIMEOUT = "timeout"
    BAD_TLS = "bad_tls"
    CREDENTIALS = "credentials"
    NOT_FOUND = "not_found"
    NOT_ACCEPTABLE = "not_acceptable"
    THROTTLED = "throttled"
    SERVER_ERROR = "server_error"
    REDIRECTED = "redirected"
    UNEXPECTED_STATUS = "unexpected_status"
    TRUNCATED = "truncated"
    BAD_BODY = "bad_body"
    TOO_LARGE = "too_large"
    BAD_ROOT = "bad_root"
    UNREADABLE = "unreadable"
    BUILD_FAILED = "build_failed"
    NO_WORKER = "no_worker"
    INTERNAL = "internal"


OUT_OF_REACH: Final = frozenset({Cause.REFUSED, Cause.UNRESOLVED, Cause.RESET, Cause.TIMEOUT, Cause.BAD_TLS})


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. ``detail`` is for people: short, printable, without secrets."""

    cause: Cause
    detail: str
    retry_after: float | None = None
    """Seconds to wait, as requested by the backend."""
    status: int | None = None
    """The HTTP status, if that is the failure."""


def build_failure(error: WorkerFailed) -> Failure:
    """A build that failed. Without a worker process nothing is known of the backend: no look at it."""
    return Failure(Cause.NO_WORKER if isinstance(error, NoWorker) else Cause.BUILD_FAILED, str(error))
