"""The keeper: a process forked before the service has threads, which forks acceptors and replaces those that
end.

A fork shares the modules that are imported, so an acceptor takes few MiB of its own. None outlives the
service: acceptors end with their socket, and the keeper finds nobody to tell of a new one.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.server.acceptors.acceptor import Acceptor
from specmux_aggregator.server.acceptors.messages import SharedGeneration, send, socket_pair

logger = logging.getLogger(__name__)

PAUSE: Final = 1.0
"""Seconds before an acceptor that ended is replaced."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """The service's side."""

    control: socket.socket
    """Tells of each acceptor."""
    shared: SharedGeneration
    pid: int

    def end(self) -> None:
        self.control.close()
        os.killpg(self.pid, signal.SIGKILL)  # with acceptors that were stopped
        os.waitpid(self.pid, 0)


def fork_keeper(settings: Settings) -> Keeper:
    """Call it before the event loop and every thread. The keeper is a child until ``end``."""
    shared = SharedGeneration()
    gc.collect()
    gc.freeze()  # the collector would write to pages that are shared
    control, pid = _fork(lambda theirs: _keep(settings, theirs, shared))
    os.setpgid(pid, pid)
    return Keeper(control, shared, pid)


def _fork(work: Callable[[socket.socket], None]) -> tuple[socket.socket, int]:
    """A child that ends with ``work``, which gets the other end of the returned socket."""
    ours, theirs = socket_pair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _work(work, theirs)
    theirs.close()
    return ours, pid


def _work(work: Callable[[socket.socket], None], wire: socket.socket) -> NoReturn:
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # only the service ends it
        work(wire)
    except Exception:  # a bug
        logger.exception("an acceptor failed")
    finally:
        os._exit(0)


def _keep(settings: Settings, control: socket.socket, shared: SharedGeneration) -> None:
    def accept(service: socket.socket) -> None:
        control.close()
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(Acceptor(settings, service, shared).run())

    os.setpgid(0, 0)  # on both sides: whoever is first
    missing = settings.listen.processes - 1
    while True:
        for _ in range(missing):
            wire, _ = _fork(accept)
            try:
                send(control, None, [wire.fileno()])
            except OSError:  # the service has ended
                return
            wire.close()
        os.wait()
        missing = 1
        time.sleep(PAUSE)
