"""Everything this package raises.

SpecmuxError
├── InvalidConfig        the configuration was refused; names the file, line and key
├── NoBackendReachable   a command that needs one found none
│   └── SourceUnreachable  the server that a command reads documents from
├── CannotListen         an address is taken, or not this machine's
├── SourceError          a command's documents cannot be had; says what to give instead
│   ├── UnreadableLayout    an OCI image layout is damaged, or not what it was taken for
│   ├── NotThere            they can be had, and what was asked for is not among them
│   └── NoSource           the command line names none, or one that cannot be
│       └── NoKubeconfig     it names none, and there is no kubeconfig
└── WorkerFailed         a build in the worker process crashed or ran out of time
    ├── TookTooLong      the latter
    └── NoWorker         the process does not start
"""

from __future__ import annotations


class SpecmuxError(Exception):
    """Root of the service's own errors. A backend that fails is a value (failure.Failure), never one of
    these."""


class InvalidConfig(SpecmuxError):
    """The configuration was refused; the running one is kept."""

    def __init__(self, reason: str, *, where: str = "") -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.reason = reason
        self.where = where


class NoBackendReachable(SpecmuxError):
    """Not one of the configured backends answered."""


class SourceUnreachable(NoBackendReachable):
    """The server that documents were to come from gave none."""


class CannotListen(SpecmuxError):
    """An address is taken, or not this machine's."""


class SourceError(SpecmuxError):
    """The documents that a command was to read cannot be had; the message says what to do."""


class UnreadableLayout(SourceError):
    """An OCI image layout cannot be read, or a blob of it is not what its descriptor says."""


class NotThere(SourceError):
    """The source was read, and what was asked for is not in it."""


class NoSource(SourceError):
    """Command line and kubeconfig name no server and no files: a matter of usage."""


class NoKubeconfig(NoSource):
    """Nothing was named, and there is no kubeconfig that would name the server."""


class NoThreads(SpecmuxError):
    """The system refuses the first thread."""


class WorkerFailed(SpecmuxError):
    """A build in the worker process crashed or ran out of time; the input is to blame until proven
    otherwise."""


class TookTooLong(WorkerFailed):
    """It was ended after ``seconds``, and the worker process with it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not done after {seconds:g} s")
        self.seconds = seconds


class NoWorker(WorkerFailed):
    """The worker process does not start, which the log has said; no input is to blame."""
