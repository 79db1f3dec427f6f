"""The disk cache against the model: two processes on one folder, limits, ages, clocks that jump, writers that
are killed at any write, damaged and exchanged files."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from model.depth import STEPS, run_machine
from model.service_model import CacheModel
from specmux_cache.errors import StoreError, StoreFull
from specmux_cache.store.disk_store import DiskStore, StoreLimits
from specmux_cache.store.keys import Key
from stress.store_kill import KillSwitch, allocated

LIMITS: Final = StoreLimits(
    high_bytes=1_500_000,
    max_age=50_000.0,
    keep_superseded=1,
    reserve_bytes=16 * 1024,
    room_timeout=0.3,
    compact_interval=1e12,
)
STEP: Final = 100.0
"""Seconds between two operations."""
UNRECORDED: Final = 60.0
"""Seconds after a use in which another is not written down."""
SLACK: Final = 400_000
"""Bytes of one body and the write-ahead log above the bound, until a compaction has made room."""

EMPTY_BYTES: Final = 300_000
"""Most bytes of a store without entries."""

PATIENCE: Final = 20.0
"""Seconds after which an operation hangs."""

BESIDE: Final = ("checks", "flights", "notes.txt")
"""What others put into the folder."""

keys = st.builds(
    Key,
    st.just("https://one"),
    st.sampled_from(["anonymous", "hmac-x"]),
    st.sampled_from(["a/v1", "b/v1"]),
    st.sampled_from(["1", "2", "3"]),
    st.just("application/json"),
)
bodies = st.builds(
    lambda number, size: _body(number, size),
    st.integers(0, 5),
    st.sampled_from([0, 100, 4096, 4097, 30_000, 150_000]),
)
handles = st.integers(0, 1)
pauses = st.sampled_from([0.0, 0.0, 0.0, 5_000.0, 60_000.0])
"""Seconds that pass before an operation: to have nobody look afterwards would waste a step."""


def _body(number: int, size: int) -> bytes:
    """Half of it compresses."""
    import random

    return random.Random(number).randbytes(size // 2) + bytes(size - size // 2)


class Hanging(AssertionError):
    """An operation that never ends."""


@contextlib.contextmanager
def _watch() -> Iterator[None]:
    """Interrupt what takes longer than PATIENCE."""

    def interrupt(*_: object) -> None:
        raise Hanging("an operation never ends")

    handler = signal.signal(signal.SIGALRM, interrupt)
    left, _ = signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)  # the suite has a timer of its own
        signal.signal(signal.SIGALRM, handler)


class StoreMachine(RuleBasedStateMachine):
    @initialize(damaged=st.sampled_from(["version", "CACHEDIR.TAG", "reserve", "compaction.lock"]))
    def begin(self, damaged: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="store-model-"))
        self.directory = self.folder / "cache"
        self.damaged = damaged
        """The one small file that is damaged in this run."""
        self.now = 1_000_000.0
        self.warnings: list[str] = []
        self.model = CacheModel()
        self.used: dict[Key, float] = {}
        """When each entry was used last."""
        self.unsure: dict[Key, float] = {}
        """When it was used before somebody died over its last use."""
        self.bodies: list[bytes] = []
        """What was put last."""
        self.is_whole = True
        """Nothing was damaged, and nobody killed, since the last repair."""
        self.is_index_sound = True
        """The index was not damaged since the last repair."""
        self.has_ages = True
        """The index was never damaged: it says when each entry was used, which no checksum covers."""
        self.stores: list[DiskStore | None] = [None, None]
        self._open(0)

    def teardown(self) -> None:
        if not hasattr(self, "folder"):
            return
        try:
            if sys.exc_info()[0] is None:
                self.check_all(0)
        finally:
            for store in self.stores:
                if store is not None:
                    store.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    @rule(handle=handles)
    def reopen(self, handle: int) -> None:
        store, self.stores[handle] = self.stores[handle], None
        if store is not None:
            store.close()
        self._open(handle)

    @rule(handle=handles, key=keys, body=bodies, pause=pauses)
    def put(self, handle: int, key: Key, body: bytes, pause: float) -> None:
        with self._doing(handle, pause) as store:
            store.put(key, body, metadata={"size": len(body)})
            self._note_put(key, body)
            self._note_use(key)
        self.bodies = [*self.bodies[-3:], body]

    @rule(handle=handles, key=keys, number=st.integers(0, 3))
    def put_again(self, handle: int, key: Key, number: int) -> None:
        """Several keys have the same body, and revisions come back."""
        if self.bodies:
            self.put(handle, key, self.bodies[number % len(self.bodies)], 0.0)

    @rule(handle=handles, key=keys, pause=pauses)
    def get(self, handle: int, key: Key, pause: float) -> None:
        with self._doing(handle, pause) as store:
            self._get(store, key)

    @rule(handle=handles, key=keys)
    def touch(self, handle: int, key: Key) -> None:
        with self._doing(handle) as store:
            if store.touch(key, metadata={"touched": True}):
                assert key in self.model.entries, "an entry was touched that was never put"
                self._note_use(key)
            else:
                # A row is there or not, whatever became of its body.
                self.model.check(key, None)

    @rule(handle=handles, key=keys)
    def delete(self, handle: int, key: Key) -> None:
        with self._doing(handle) as store:
            if not store.delete(key):
                self.model.check(key, None)
            self.model.delete(key)

    @rule(handle=handles, ratio=st.sampled_from([None, None, 0.05, 0.3, 0.6]), pause=pauses)
    def compact(self, handle: int, ratio: float | None, pause: float) -> None:
        with self._doing(handle, pause) as store:
            before = {row.key for row in store.rows()}
            goal = None if ratio is None else round(LIMITS.high_bytes * ratio)
            report = store.compact(max_bytes=goal)
            assert report.skipped == "" and report.is_complete
            after = {row.key for row in store.rows()}
            wanted = LIMITS.low_bytes if goal is None else goal
            if self.is_whole:
                used = store.stats().bytes_used
                assert used <= max(wanted, EMPTY_BYTES), f"{used} bytes are left, {wanted} were wanted"
            self._account_for(before - after, after, is_pressed=report.superseded + report.unused > 0)

    @rule(handle=handles, times=st.integers(2, 4))
    def leave_alone(self, handle: int, times: int) -> None:
        """Nobody uses it, and it compacts day by day."""
        for _ in range(times):
            self.compact(handle, None, 30_000.0)

    @rule(handle=handles)
    def clear(self, handle: int) -> None:
        with self._doing(handle) as store:
            store.clear()
            assert list(store.rows()) == []
            self.model.entries.clear()

    @rule(handle=handles)
    def check_all(self, handle: int) -> None:
        """Everything is read; a repaired store has no faults."""
        with self._doing(handle) as store:
            if self.is_whole:
                assert store.check() == (), "faults, and nothing happened"
            store.check(fix=True)
            assert store.check() == (), "a repaired store has faults"
            for key in list(self.model.entries):
                self._get(store, key)
            for row in store.rows():
                assert row.key in self.model.entries, "an entry that was never put"
            used = store.stats().bytes_used
            assert self._allocated() <= used, "bytes on disk are not counted"
            self.is_whole = self.is_index_sound = True

    @rule(seconds=st.sampled_from([10.0, -200.0, 1e7, -1e7]))
    def move_clock(self, seconds: float) -> None:
        self._move_clock(seconds)

    @rule(
        handle=handles,
        key=keys,
        number=st.integers(0, 3),
        is_put=st.booleans(),
        off=st.sampled_from([1e7, -1e7]),
    )
    def use_by_a_wrong_clock(self, handle: int, key: Key, number: int, is_put: bool, off: float) -> None:
        """A machine starts with a wrong clock, and soon it is set right."""
        before = self.now
        self._move_clock(off)
        if is_put:
            self.put_again(handle, key, number)
        else:
            self.get(handle, key, 0.0)
        self.now = before

    @rule(
        work=st.sampled_from(["put", "delete", "compact"]),
        key=keys,
        body=bodies,
        point=st.integers(1, 25),
        handle=handles,
    )
    def die(self, work: str, key: Key, body: bytes, point: int, handle: int) -> None:
        """In the middle of an operation: it is done, or it is not."""
        match work:
            case "put":
                if self._in_a_child(point, lambda store: store.put(key, body, metadata={}), handle):
                    self.model.put_and_die(key, body)
                    self.unsure.setdefault(key, self.used.get(key, self.now))
                    self.used[key] = self.now
                else:
                    self._note_put(key, body)
                    self._note_use(key)
            case "delete":
                self.model.doubt([key])
                if not self._in_a_child(point, lambda store: store.delete(key), handle):
                    self.model.delete(key)
            case _:
                self.model.doubt()
                self._in_a_child(point, lambda store: store.compact(max_bytes=0), handle)

    @rule(seconds=st.sampled_from([1.0, 4_000.0]))
    def age_files(self, seconds: float) -> None:
        """Leftovers become old enough to be swept."""
        for path in self.directory.rglob("*"):
            if path.is_file() and path.parent.name != "cache":
                status = path.stat()
                os.utime(path, (status.st_atime - seconds, status.st_mtime - seconds))

    @rule(how=st.sampled_from(["flip", "cut", "remove", "fifo", "link", "folder"]), number=st.integers(0, 9))
    def damage_body(self, how: str, number: int) -> None:
        paths = sorted(path for path in (self.directory / "bodies").rglob("*") if not path.is_dir())
        if paths:
            _damage(paths[number % len(paths)], how, number, self.folder)
            self.model.doubt()
            self.is_whole = False

    @rule(how=st.sampled_from(["flip", "cut", "remove"]), number=st.integers(0, 9))
    def damage_index(self, how: str, number: int) -> None:
        self._close_all()
        for suffix in ("-wal", "-shm") if how == "remove" else ():
            (self.directory / f"cache.db{suffix}").unlink(missing_ok=True)
        _damage(self.directory / "cache.db", how, number, self.folder)
        self.model.doubt()
        self.is_whole = self.is_index_sound = self.has_ages = False
        self._open(0)

    @rule(how=st.sampled_from(["flip", "cut", "remove", "fifo"]), number=st.integers(0, 9))
    def damage_small_file(self, how: str, number: int) -> None:
        self._close_all()
        path = self.directory / self.damaged
        if path.exists() and not (how == "fifo" and self.damaged in ("version", "CACHEDIR.TAG")):
            _damage(path, how, number, self.folder)
            self.is_whole = False
        self._open(0)

    @rule(name=st.sampled_from(BESIDE))
    def use_the_folder_for_something_else(self, name: str) -> None:
        """Other parts of the program, and people, put things beside."""
        self._close_all()
        path = self.directory / name
        if name.endswith(".txt"):
            path.write_text("mine")
        else:
            path.mkdir(exist_ok=True)
        self._open(0)

    @invariant()
    def nothing_is_above_the_bound(self) -> None:
        STEPS["store"] += 1
        assert self._allocated() <= LIMITS.high_bytes + SLACK, "above the bound"

    def _allocated(self) -> int:
        return allocated(self.directory) - sum(
            allocated(path) for name in BESIDE if (path := self.directory / name).exists()
        )

    def _open(self, handle: int) -> None:
        with _watch():
            self.stores[handle] = DiskStore.open(
                self.directory, limits=LIMITS, clock=lambda: self.now, warn=self.warnings.append
            )

    def _move_clock(self, seconds: float) -> None:
        self.now = max(1000.0, self.now + seconds)

    @contextlib.contextmanager
    def _doing(self, handle: int, pause: float = 0.0) -> Iterator[DiskStore]:
        """One operation by one process; what its compaction removes in the background is waited for."""
        self._move_clock(pause + STEP)
        with _watch():
            yield from self._do(handle)

    def _do(self, handle: int) -> Iterator[DiskStore]:
        was_whole = self.is_whole
        if self.stores[handle] is None:
            self._open(handle)
        store = self.stores[handle]
        assert store is not None
        compactor = store._compactor
        try:
            yield store
        except StoreFull:
            self.model.doubt()  # it made room for what it then had no room for
        except StoreError as error:
            assert not was_whole, f"{error!r}, and nothing happened"
            raise
        if store._compactor is not compactor:
            assert store._compactor is not None
            store._compactor.join()
            self.model.doubt()
        if self.warnings:
            assert not was_whole, self.warnings
            self.warnings.clear()

    def _note_put(self, key: Key, body: bytes) -> None:
        self.model.put(key, body)
        if not self.is_index_sound:
            self.model.doubt([key])  # damage that no put met costs what was put after it, too

    def _note_use(self, key: Key) -> None:
        self.used[key] = self.now
        self.unsure.pop(key, None)

    def _get(self, store: DiskStore, key: Key) -> None:
        found = store.get(key)
        self.model.check(key, None if found is None else found.body)
        if found is not None:
            assert found.row.key == key
            self._note_use(key)

    def _account_for(self, gone: set[Key], left: set[Key], *, is_pressed: bool) -> None:
        """Only what is old, superseded or used longest ago may go."""
        for key in list(self.used):
            self.used[key] = min(self.used[key], self.now)
        for key in gone:
            known = self.model.entries.get(key)
            if known is None or known.may_be_gone:
                self.model.delete(key)
                continue
            used = min(self.used[key], self.unsure.get(key, self.now)) - UNRECORDED
            is_aged = self.now - used >= LIMITS.max_age
            others = [
                other for other in self.model.entries if _document(other) == _document(key) and other != key
            ]
            is_superseded = any(self.used[other] >= used for other in others)
            assert is_aged or is_superseded or is_pressed, f"{key} was removed, and is current and young"
            if not (is_aged or is_superseded):
                newer = [each for each in left if self.used.get(each, 0.0) < used]
                assert not newer, f"{key} was removed before {newer[0]}, which was used longer ago"
            self.model.delete(key)
        for key in left:
            if key in self.used and self.has_ages:
                assert self.now - self.used[key] < LIMITS.max_age + STEP, f"{key} is too old and was kept"

    def _close_all(self) -> None:
        for handle, store in enumerate(self.stores):
            if store is not None:
                store.close()
            self.stores[handle] = None

    def _in_a_child(self, point: int, work: Callable[[DiskStore], object], handle: int) -> bool:
        """Do it in a process that dies at its ``point``-th write; whether it did."""
        self._move_clock(STEP)
        self._close_all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a process with threads forks
            child = os.fork()
        if child == 0:
            status = 3
            try:
                KillSwitch(point).install()
                with DiskStore.open(self.directory, limits=LIMITS, clock=lambda: self.now) as store:
                    work(store)
                status = 0
            except StoreFull:
                status = 4
            finally:
                os._exit(status)
        try:
            with _watch():
                status = os.waitpid(child, 0)[1]
        except Hanging:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        has_died = os.WIFSIGNALED(status)
        if has_died:
            assert os.WTERMSIG(status) == signal.SIGKILL
        else:
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, 4), "the child failed"
            if code == 4:
                self.model.doubt()
                has_died = True
        self.is_whole &= not has_died
        if self._allocated() > LIMITS.high_bytes - SLACK:
            self.model.doubt()  # it may have compacted
        self._open(handle)
        return has_died


def _document(key: Key) -> tuple[str, ...]:
    return key.server, key.partition, key.group_version, key.media_type


def _damage(path: Path, how: str, number: int, folder: Path) -> None:
    data = path.read_bytes() if path.is_file() else b""
    if path.is_dir():
        return
    match how:
        case "flip" if data:
            at = len(data) * number // 10
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        case "cut" if data:
            os.truncate(path, len(data) * number // 10)
        case "fifo":
            path.unlink()
            os.mkfifo(path)
        case "link":
            path.unlink()
            (folder / "elsewhere").write_bytes(data)
            path.symlink_to(folder / "elsewhere")
        case "folder":
            path.unlink()
            path.mkdir()
        case "remove":
            path.unlink()


def test_the_store_answers_with_what_was_put_or_nothing() -> None:
    run_machine(StoreMachine, examples=40, steps=30)


def test_compaction_of_a_damaged_index_begins_anew() -> None:
    """Found by the machine: what only a compaction reads was damaged, and it raised StoreDamaged."""
    machine = StoreMachine()
    try:
        machine.begin(damaged="version")
        machine.put(
            body=_body(0, 4096),
            handle=0,
            key=Key("https://one", "anonymous", "a/v1", "1", "application/json"),
            pause=0.0,
        )
        machine.damage_index(how="flip", number=6)
        machine.compact(handle=0, pause=0.0, ratio=None)
        machine.nothing_is_above_the_bound()
    finally:
        machine.teardown()


def test_what_is_put_into_a_damaged_index_goes_with_it() -> None:
    """The machine found it: only a check reads the damaged page, and sets the index aside."""
    machine = StoreMachine()
    key = Key("https://one", "anonymous", "a/v1", "1", "application/json")
    try:
        machine.begin(damaged="version")
        machine.put(body=_body(0, 4096), handle=0, key=key, pause=0.0)
        machine.damage_index(how="flip", number=1)
        machine.put(body=b"", handle=0, key=key, pause=0.0)
        machine.check_all(handle=0)
        machine.put(body=b"", handle=0, key=key, pause=0.0)
        assert not machine.model.entries[key].may_be_gone
        machine.get(handle=0, key=key, pause=0.0)
    finally:
        machine.teardown()


def test_what_a_clock_that_is_behind_puts_makes_no_other_revision_obsolete() -> None:
    """Ranked by a clock that was behind, all uses were equal, and the revision used last went."""
    machine = StoreMachine()
    one, two, three = (
        Key("https://one", "anonymous", "a/v1", number, "application/json") for number in "123"
    )
    try:
        machine.begin(damaged="version")
        machine.put(body=b"2", handle=0, key=two, pause=0.0)
        machine.put(body=b"1", handle=0, key=one, pause=0.0)
        machine.get(handle=0, key=two, pause=0.0)
        machine.use_by_a_wrong_clock(handle=0, key=three, number=0, is_put=True, off=-1e7)
        machine.compact(handle=0, pause=0.0, ratio=None)
        machine.get(handle=0, key=two, pause=0.0)
    finally:
        machine.teardown()


def test_what_nobody_could_put_again_keeps_its_age() -> None:
    """The machine found it: a writer died, so the entry is as old as it was before."""
    machine = StoreMachine()
    key = Key("https://one", "anonymous", "a/v1", "1", "application/json")
    try:
        machine.begin(damaged="version")
        machine.put(body=b"", handle=0, key=key, pause=0.0)
        machine.use_by_a_wrong_clock(handle=0, key=key, number=0, is_put=True, off=-1e7)
        machine.die(work="put", key=key, body=b"1", point=1, handle=0)
        machine.compact(handle=0, pause=0.0, ratio=None)
        assert key not in machine.model.entries
    finally:
        machine.teardown()
