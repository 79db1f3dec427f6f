"""The service as a process: its event loop, logging, signals, configuration changes, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import disable_created_metrics

from specmux_aggregator.app import App
from specmux_aggregator.config.settings import KubernetesSettings, LogSettings, Settings
from specmux_aggregator.documents.archive import open_state
from specmux_aggregator.errors import CannotListen, InvalidConfig, NoThreads
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.tasks import FewThreads, log_failure
from specmux_aggregator.workers.worker import end_helpers

if TYPE_CHECKING:  # imported where there are several processes
    from specmux_aggregator.server.acceptors.keeper import Keeper

logger = logging.getLogger(__name__)

FILES: Final = 65_536
"""Open files that a process may need: one per client, and one per relayed request."""

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108  # nothing is written to a fixed name in it

FIRST_HANDED: Final = 3
"""Descriptor of the first socket that systemd hands over (sd_listen_fds(3))."""

Changes = Callable[[asyncio.Event], AsyncIterator[Settings | InvalidConfig]]
"""Yields the result of reading each change of the configuration; the event requests a reading at once
(SIGHUP)."""


async def run(
    settings: Settings,
    *,
    changes: Changes | None = None,
    started: Callable[[str, int], None] | None = None,
    is_whole_process: bool = False,
    is_for_one_user: bool = False,
    keeper: Keeper | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. ``started`` is called with the address and port that were bound.
    ``is_for_one_user``: refuse requests under a host name other than this machine's. ``is_whole_process``:
    the process ends afterwards, so signals during its end are ignored."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more per counter, which nobody reads
    sockets: tuple[socket.socket, ...] = ()
    if is_whole_process:
        sockets = take_handed_sockets(os.environ)
        raise_file_limit()
        favour_the_loop()
        find_temporary_directory()
    stop, reread = asyncio.Event(), asyncio.Event()
    with handle_signals(stop, reread, is_last=is_whole_process):
        cluster = await asyncio.to_thread(_find_cluster, settings.kubernetes)
        app = App(
            settings,
            await open_state(settings),
            cluster=cluster,
            is_for_one_user=is_for_one_user,
            sockets=sockets,
            keeper=keeper,
        )
        try:
            host, port = await app.start()
            logger.info("serving on %s", _url(host, port, is_tls=settings.listen.tls_cert_file is not None))
            notify("READY=1")
            if started is not None:
                started(host, port)
            await _until_stopped(app, stop, changes(reread) if changes else None)
        finally:
            notify("STOPPING=1")
            await app.stop()
            logger.info("stopped")


def _find_cluster(settings: KubernetesSettings) -> Backend | None:
    """The apiserver of the cluster that the settings select. Blocks."""
    if not settings.is_meant:  # what reads kubeconfigs is not imported
        return None
    from specmux_aggregator.kubernetes.cluster_access import choose_access

    access = choose_access(settings, os.environ)
    if access is None:
        return None
    logger.info("cluster: %s at %s", access.context, access.server.url)
    return access.server


def favour_the_loop() -> None:
    """Reduce pauses of the event loop: threads release the GIL after a millisecond instead of five, and the
    garbage collector, which would scan a large answer several times while it is parsed, runs less often and
    skips imported modules."""
    sys.setswitchinterval(0.001)
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def find_temporary_directory() -> None:
    """Use shared memory where no other folder can be written to, as in a container with a read-only root:
    workers start through a socket in a temporary folder."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        if os.access(SHARED_MEMORY, os.W_OK):
            tempfile.tempdir = SHARED_MEMORY


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard limit: most systems start a process with 1,024 for the
    sake of programs that use select()."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _url(host: str, port: int, *, is_tls: bool) -> str:
    """A URL that terminals make clickable: a wildcard address is shown as this machine's."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound
    return f"{'https' if is_tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/"


@contextmanager
def handle_signals(stop: asyncio.Event, reread: asyncio.Event, *, is_last: bool = False) -> Iterator[None]:
    """SIGTERM and SIGINT set ``stop``, SIGHUP sets ``reread``. Afterwards the previous handlers are restored;
    with ``is_last`` the signals are ignored, since a signal during the interpreter's own end would turn a
    good exit into a failure."""
    loop = asyncio.get_running_loop()
    events = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: reread}
    # asyncio puts the default back when it removes a handler: a signal at that moment ends the process. So
    # these have handlers of ours, and asyncio, which wakes its loop for signals, has one that does nothing.
    loop.add_signal_handler(signal.SIGURG, lambda: None)
    before = {}
    for number, event in events.items():
        before[number] = signal.signal(number, lambda *_, event=event: loop.call_soon_threadsafe(event.set))
        signal.siginterrupt(number, False)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if is_last else handler)
        loop.remove_signal_handler(signal.SIGURG)


def configure_logging(log: LogSettings) -> None:
    """Log one line per record on standard error, as text or JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JSONFormatter()
        if log.format == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=log.level.upper(), handlers=[handler], force=True)


class JSONFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


async def _until_stopped(
    app: App, stop: asyncio.Event, changes: AsyncIterator[Settings | InvalidConfig] | None
) -> None:
    if changes is None:
        await stop.wait()
        return
    following = asyncio.create_task(_follow(app, changes))
    log_failure(following, logger, "the configuration is no longer followed")
    try:
        await stop.wait()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _follow(app: App, changes: AsyncIterator[Settings | InvalidConfig]) -> None:
    async for change in changes:
        if isinstance(change, InvalidConfig):
            fault = "; ".join(str(change).splitlines())
            logger.error("the changed configuration is refused, the one before stays in force: %s", fault)
            app.note_config(error=fault)
        else:
            await app.reconfigure(change)


def notify(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """``READY=1``, ``STOPPING=1`` and so on. An unreachable systemd is ignored."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A leading "@" means Linux' abstract namespace, where names begin with a zero byte.
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.connect(path)
            sender.sendall(state.encode())
    except OSError:
        return


def take_handed_sockets(
    environ: MutableMapping[str, str], *, first: int = FIRST_HANDED
) -> tuple[socket.socket, ...]:
    """The listening sockets that systemd handed to this process; none where it handed them to another.

    They, and the variables that name them, are not inherited by workers. Raises CannotListen for a descriptor
    that the service cannot serve on. ``first``: the first descriptor.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        return ()
    if not (count.isascii() and count.isdigit()):
        raise CannotListen(f"LISTEN_FDS is no number: {count[:32]!r}")
    return tuple(_take_handed(descriptor) for descriptor in range(first, first + int(count[:5])))


def _take_handed(descriptor: int) -> socket.socket:
    try:
        handed = socket.socket(fileno=descriptor)
    except OSError as error:
        raise CannotListen(f"the descriptor {descriptor} of LISTEN_FDS is no socket") from error
    handed.set_inheritable(False)
    is_ip = handed.family in (socket.AF_INET, socket.AF_INET6)
    if not (is_ip and handed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)):
        handed.close()
        raise CannotListen(
            f"the descriptor {descriptor} of LISTEN_FDS does not listen for TCP: the socket unit needs"
            " ListenStream= with an address and port, and Accept=no"
        )
    return handed


def run_to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Run like ``asyncio.run``. Raises NoThreads if the system refuses the first thread."""
    try:
        threads = FewThreads(min(32, (os.cpu_count() or 1) + 4), "asyncio")
    except NoThreads:
        work.close()
        raise
    try:
        with asyncio.Runner(loop_factory=lambda: _Loop(threads)) as runner:
            runner.run(work)
    finally:
        end_helpers()


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, threads: FewThreads) -> None:
        super().__init__()
        self._threads = threads
        self.set_default_executor(threads)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        try:
            await super().shutdown_default_executor()
        except RuntimeError:  # it takes a thread to wait for the threads
            self._threads.shutdown()
