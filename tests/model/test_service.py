"""Two replicas of the whole service on virtual time, against the model: backends that change, hang, restart
and come and go, replicas that are restarted and killed, readers that a balancer sends to and fro,
followers."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

import orjson
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from model.depth import STEPS, run_machine
from model.service_model import (
    ChangeView,
    Holdings,
    ModelBackend,
    ModelServer,
    PublicationView,
    Reader,
    marker,
    offers_of,
    published,
    take_event,
)
from model.simulation import Disk, Replica, World, owned_task
from model.virtual_time import EPOCH, VirtualLoop, clock_of
from specmux_aggregator.changes.events import SILENCE, Feed
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Provenance
from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.group_versions import GroupVersion

KEYS: Final = ("apis/a.io/v1", "apis/b.io/v1", "apis/b.io/v2")
SETTLE: Final = 2.0
REST: Final = 500.0
"""Seconds after which everything must have been seen: the longest pause, the grace, a minute without a
server."""
START_SECONDS: Final = 12.0
"""For which a server that has just started lists a part. Shorter than ``polling.removal_grace``."""
NOTICED_SECONDS: Final = 40
"""After which it was seen that a document is gone: two checks and the grace between them."""
WHOLE_SECONDS: Final = 40.0
"""For which it lists all before it may list a part again: a check has seen that, and counts anew."""

keys = st.sampled_from(KEYS)
replicas = st.integers(0, 1)
numbers = st.integers(0, 7)


@dataclass
class Follower:
    """A client that follows, cut off and resumed anywhere."""

    kind: Feed
    view: PublicationView | ChangeView
    replica: int
    reading: asyncio.Task[None] | None = None


class ServiceMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop(0)
        self._clock = clock_of(self.loop)
        self._clock.__enter__()
        self.replicas: list[Replica] = []
        self.followers: list[Follower] = []
        self.told: dict[int, bytes] = {}
        """Each change that any follower was told."""
        self.lost: list[str] = []

    @initialize(
        stand_in=st.sampled_from([None, None, None, 0, 1, 2]),
        excluded=st.frozensets(keys, max_size=2),
        seed=st.integers(0, 1 << 16),
        kinds=st.lists(
            st.sampled_from(
                ["v3", "v3", "v2", "unhashed", "requests", "requests", "listed", "listed", "found"]
            ),
            min_size=2,
            max_size=3,
        ),
    )
    def begin(self, seed: int, kinds: list[str], stand_in: int | None, excluded: frozenset[str]) -> None:
        if stand_in is not None:  # a cluster: its apiserver stands in for what nobody else has
            kinds = ["fallback" if number == stand_in % 3 else "found" for number in range(3)]
        self.loop._order.seed(seed)
        self.loop.set_task_factory(owned_task)
        backends = [_backend(number, kind) for number, kind in enumerate(kinds)]
        for backend in backends:
            if backend.is_fallback:
                backend.excluded = excluded
        self.world = World(backends, random.Random(seed), self.loop)
        self.disks = [Disk(lambda: EPOCH), None]
        self.revision = 1
        self.holdings = Holdings()
        self._note_holdings()
        self.replicas = [self._replica(number) for number in range(2)]
        for replica in self.replicas:
            self._run(replica.start())
        for kind in Feed:
            for number in range(2):
                self.follow(kind, number)
        self._wait(0.5)

    def teardown(self) -> None:
        try:
            if self.replicas and sys.exc_info()[0] is None:
                self.rest(True)
            for replica in self.replicas:
                if not replica.is_dead:
                    self._run(replica.stop())
            self._run(_cancel_all())
        finally:
            self._clock.__exit__(None, None, None)
            self.loop.close()

    # What backends do

    @rule(backend=numbers, server=numbers, key=keys)
    def change_document(self, backend: int, server: int, key: str) -> None:
        self.revision += 1
        self._server(backend, server).documents[key] = self.revision

    @rule(backend=numbers, server=numbers, key=keys, times=st.integers(1, 3))
    def go_back_and_forth(self, backend: int, server: int, key: str, times: int) -> None:
        found = self._server(backend, server)
        before = found.documents.get(key)
        for _ in range(times):
            self.revision += 1
            found.documents[key] = self.revision
            self._wait(11.0)
            if before is not None:
                found.documents[key] = before
                self._wait(11.0)

    @rule(backend=numbers, server=numbers, key=keys)
    def remove_document(self, backend: int, server: int, key: str) -> None:
        self._server(backend, server).documents.pop(key, None)

    @rule(backend=numbers, part=st.sets(keys, min_size=1), seconds=st.sampled_from([0.0, 11.0, 60.0]))
    def roll_out(self, backend: int, part: set[str], seconds: float) -> None:
        """One server after the other comes up with its own build of some documents."""
        for server in self._backend(backend).servers:
            for key in sorted(part):
                self.revision += 1
                server.documents[key] = self.revision
            self._wait(seconds)

    @rule(backend=numbers, server=numbers, key=keys)
    def copy_document(self, backend: int, server: int, key: str) -> None:
        """The servers of one backend come to agree."""
        source = self._server(backend, server)
        for each in self._backend(backend).servers:
            if key in source.documents:
                each.documents[key] = source.documents[key]

    @rule(
        backend=numbers,
        server=numbers,
        health=st.sampled_from(["up", "refuses", "hangs", "fails", "forbids"]),
    )
    def change_health(self, backend: int, server: int, health: Any) -> None:
        self._server(backend, server).health = health

    @rule(
        backend=numbers,
        server=numbers,
        seconds=st.sampled_from([0.0, 0.0, 5.0, 30.0]),
        part=st.sets(keys, min_size=1),
    )
    def restart_server(self, backend: int, server: int, seconds: float, part: set[str]) -> None:
        """Down for a while, then it lists a part of what it has, then all."""
        found = self._server(backend, server)
        found.health = "refuses"
        self._wait(seconds)
        found.health = "up"
        if self.loop.time() - found.whole_since >= WHOLE_SECONDS:
            found.hidden = frozenset(part)
            self._wait(START_SECONDS)
            found.hidden, found.whole_since = frozenset(), self.loop.time()

    @rule(replica=replicas, backend=numbers, key=keys, seconds=st.sampled_from([0.0, 25.0]))
    def freeze_way(self, replica: int, backend: int, key: str, seconds: float) -> None:
        """One replica's way to a backend freezes, and then a document changes."""
        self.world.cut ^= {(replica, self._backend(backend).name)}
        self.change_document(backend, 0, key)
        self._wait(seconds)

    @rule(backend=numbers, server=numbers, release=st.integers(30, 32))
    def upgrade_server(self, backend: int, server: int, release: int) -> None:
        self._server(backend, server).release = release

    @rule(backend=numbers, speaks=st.sampled_from(["v3", "v2", "unhashed"]))
    def change_speech(self, backend: int, speaks: Any) -> None:
        found = self._backend(backend)
        if found.balance == "alone":
            found.speaks = speaks

    # What operators do

    @rule(backend=numbers, priority=st.integers(0, 2))
    def change_priority(self, backend: int, priority: int) -> None:
        self._backend(backend).priority = priority
        self._configure()

    @rule(backend=numbers)
    def remove_or_add_backend(self, backend: int) -> None:
        found = self._backend(backend)
        found.is_configured = not found.is_configured
        self._configure()

    @rule(backend=numbers, excluded=st.frozensets(keys))
    def change_facts(self, backend: int, excluded: frozenset[str]) -> None:
        found = self._backend(backend)
        if found.is_found:
            found.excluded = excluded
            self._configure()

    @rule(backend=numbers, owns=st.none() | st.frozensets(keys, min_size=1))
    def change_owned(self, backend: int, owns: frozenset[str] | None) -> None:
        self._backend(backend).owns = owns
        self._configure()

    @rule(
        replica=replicas,
        is_clean=st.booleans(),
        lead=st.sampled_from([None, None, 0.0, 0.05, 1.0, 3.0]),
        seconds=st.sampled_from([0.0, 3.0, 40.0]),
        backend=numbers,
        key=keys,
        goes=st.booleans(),
    )
    def restart_while_a_document_goes(
        self,
        replica: int,
        is_clean: bool,
        lead: float | None,
        seconds: float,
        backend: int,
        key: str,
        goes: bool,
    ) -> None:
        """It ends at any moment after that. ``lead``: seconds since its removal was published; None: before
        that was noticed."""
        before = self.replicas[replica].versions()
        if goes:
            for server in self._backend(backend).servers:
                server.documents.pop(key, None)
        if goes and lead is not None:
            for _ in range(NOTICED_SECONDS):
                if self.replicas[replica].versions() != before:
                    break
                self._wait(1.0)
            self._wait(lead)
        self.restart_replica(replica, is_clean, seconds)

    def restart_replica(self, replica: int, is_clean: bool, seconds: float) -> None:
        old = self.replicas[replica]
        if not old.is_dead:
            self._run(old.stop() if is_clean else old.kill())
        self._wait(seconds)
        new = self._replica(replica)
        self._run(new.start())
        self.replicas[replica] = new  # it listens now
        self._read_at_start(replica)

    @rule(replica=replicas, seconds=st.sampled_from([0.0, 0.01, 0.1]))
    def read_after_start(self, replica: int, seconds: float) -> None:
        self.restart_replica(replica, True, 0.0)
        self._wait(seconds)
        self._read_at_start(replica)

    def _read_at_start(self, replica: int) -> None:
        """An empty list, or an absent document, would tell clients that there are no APIs."""
        found = self.replicas[replica]
        is_known = all(each.attempted for each in found.publisher.current.observations.values())
        mine = [each for each in self.world.backends if each.is_configured]
        for path in ("/openapi/v3", f"/openapi/v3/{KEYS[0]}"):
            answer = found.service.immediate(Request("GET", path))
            if isinstance(answer, PreparedAnswer) and not found.versions() and not is_known and mine:
                assert answer.status == 503, f"{answer.status} for {path}, and not every backend was asked"

    @rule(writes=st.integers(0, 15), is_before=st.booleans(), backend=numbers, key=keys)
    def die_at_a_write(self, writes: int, is_before: bool, backend: int, key: str) -> None:
        """In the middle of what some changes make it write: that is on the disk, or it is not."""
        disk = self.disks[0]
        assert disk is not None
        disk.dies_after, disk.dies_before = writes, is_before
        for _ in range(4):
            self.change_document(backend, 0, key)
            self._wait(16.0)
        self.restart_replica(0, False, 0.0)

    @rule(seconds=st.sampled_from([0.001, 0.05, 0.5, 2.5, 11.0, 16.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self._wait(seconds)

    # What clients do

    @rule(first=replicas)
    def read_all_through_the_balancer(self, first: int) -> None:
        """Each URL of one replica's root, each request at the other replica than the last."""
        if any(replica.is_dead for replica in self.replicas):
            return
        for key, (hash, _) in self.replicas[first].versions().items():
            self._run(self._read(key, hash, 1 - first))

    @rule(replica=replicas)
    def read_all(self, replica: int) -> None:
        """What one replica lists it delivers, unless its owner has failed meanwhile."""
        found = self.replicas[replica]
        if not found.is_dead:
            for key in found.versions():
                self._run(self._read_here(found, key))

    @rule(replica=replicas, key=keys)
    def read_what_may_be_new(self, replica: int, key: str) -> None:
        if not self.replicas[replica].is_dead:
            self._run(self._read(key, "F" * 128, replica))

    @rule(backend=numbers, key=keys, replica=replicas)
    def read_what_is_new(self, backend: int, key: str, replica: int) -> None:
        """Another replica has told a client of it already."""
        self.change_document(backend, 0, key)
        self.read_what_may_be_new(replica, key)

    @rule(kind=st.sampled_from(list(Feed)), replica=replicas)
    def follow(self, kind: Feed, replica: int) -> None:
        if len(self.followers) < 6:
            view = PublicationView() if kind is Feed.PUBLICATIONS else ChangeView()
            self.followers.append(Follower(kind, view, replica))
            self._connect(self.followers[-1])

    @rule(number=numbers, replica=replicas)
    def resume_elsewhere(self, number: int, replica: int) -> None:
        if self.followers:
            follower = self.followers[number % len(self.followers)]
            follower.replica = replica
            self._connect(follower)

    # What must hold

    @rule(keeps_closed=st.booleans())
    def rest(self, keeps_closed: bool) -> None:
        """Everybody is well, nothing changes any more: the root is the pure function of what backends
        have."""
        for disk in self.disks:
            if disk is not None:
                disk.dies_after = None
        self.world.cut.clear()
        for number, replica in enumerate(self.replicas):
            if replica.is_dead:
                self.restart_replica(number, True, 0.0)
        for backend in self.world.backends:
            for server in backend.servers:
                is_kept = keeps_closed and server.health == "forbids" and backend.balance == "alone"
                server.health, server.hidden = ("forbids" if is_kept else "up"), frozenset()
        self._wait(REST)
        mine = [each for each in self.world.backends if each.is_configured]
        shut = {each.name for each in mine if not each.is_up}
        """What these had at last is kept where nobody else has it; who is merely forbidden keeps its
        place."""
        for replica in self.replicas:
            wanted = published(each for each in mine if each.is_up)
            versions = replica.versions()
            for key, (hash, owner) in versions.items():
                if owner in shut:
                    (backend,) = (each for each in mine if each.name == owner)
                    assert key not in wanted or not backend.is_closed, f"{owner} is closed and owns {key}"
                    wanted.pop(key, None)
                    continue
                assert wanted.get(key, ("nobody",))[0] == owner, f"{key} belongs to {owner}"
                body = self._run(self._body(replica, key, hash))
                assert marker(owner, key, wanted[key][1]).encode() in body, "another revision"
            assert wanted.keys() <= versions.keys(), "what a backend has is not published"
            settled = {name: (each.hash, each.backend) for name, each in replica.history._settled.items()}
            assert settled == dict(versions), "the history does not settle"
        assert shut or self.replicas[0].versions() == self.replicas[1].versions(), "replicas disagree"
        for follower in self.followers:
            follower.view.compare(self.replicas[follower.replica].versions())

    @invariant()
    def nothing_failed(self) -> None:
        STEPS["service"] += 1
        self._note_holdings()
        assert not self.lost, self.lost
        assert not self.loop.failures, self.loop.failures
        for replica in self.replicas:
            if not replica.is_dead:
                self._compare_told(replica.history.log)

    def _note_holdings(self) -> None:
        self.holdings.note(self.world.backends, self.loop.time())

    def _backend(self, number: int) -> ModelBackend:
        return self.world.backends[number % len(self.world.backends)]

    def _server(self, backend: int, server: int) -> ModelServer:
        servers = self._backend(backend).servers
        return servers[server % len(servers)]

    def _replica(self, number: int) -> Replica:
        replica = Replica(self.world, number, disk=self.disks[number], settle=SETTLE)
        last: dict[str, Any] = {"snapshot": replica.publisher.current}

        def note(snapshot: Snapshot) -> None:
            before, last["snapshot"] = last["snapshot"], snapshot
            self._note_holdings()
            for key in before.entries.keys() - snapshot.entries.keys():
                heard = (before.observations.get(BackendName(name)) for name in self.holdings.owners(key))
                if any(each is not None and key in each.offers for each in heard):
                    self.lost.append(f"{key} vanished")
            for entry in snapshot.entries.values():
                is_ours = entry.offer.provenance.value != "native"
                if is_ours and replica.documents.find_json(entry.key) is None and replica.state is None:
                    self.lost.append(f"{entry.group_version} is published without its bytes")

        replica.publisher.subscribe(note)
        return replica

    def _configure(self) -> None:
        for replica in self.replicas:
            self._run(replica.configure())
        self._wait(0.1)

    async def _read(self, key: str, hash: str, replica: int) -> None:
        reader = Reader()
        query = f"hash={hash}"
        while True:
            request = Request("GET", f"/openapi/v3/{key}", query)
            must_have = self._must_have(self.replicas[replica], key)
            answer = await self.replicas[replica].answer(request)
            if answer is None or self.replicas[replica].is_dead:
                return
            fields = dict(line.split(": ", 1) for line in answer.head.decode().split("\r\n")[1:-1])
            asked = query.partition("hash=")[2].partition("&")[0]
            reader.take(
                answer.status,
                asked=asked,
                body=answer.body,
                location=fields.get("Location", ""),
                is_current=answer.is_immutable,
            )
            if answer.status != 301:
                assert answer.status in (200, 404, 503), answer.status
                assert answer.status != 404 or not must_have, "404, and a backend has it"
                return
            query = fields["Location"].removeprefix("?")
            replica = 1 - replica
            if self.replicas[replica].is_dead:
                return

    def _must_have(self, replica: Replica, key: str) -> bool:
        """Whether a backend that this replica has read has it, and is well or was read by the other replica:
        that may have published it already."""
        observations = replica.publisher.current.observations
        (other,) = (each for each in self.replicas if each is not replica)
        listed = None if other.is_dead else other.versions().get(key)

        def has(backend: ModelBackend) -> bool:
            observation = observations.get(BackendName(backend.name))
            if observation is None or not backend.is_configured or key not in offers_of(backend):
                return False
            if backend.balance == "requests":
                return False
            if listed is not None and listed[1] == backend.name and observation.offers:
                return True
            is_well = observation.failure is None and backend.is_up and not self.world.cut
            return observation.attempted and is_well

        return any(map(has, self.world.backends))

    async def _read_here(self, replica: Replica, key: str) -> None:
        snapshot = replica.publisher.current
        entry = snapshot.entries.get(GroupVersion(key))
        if entry is None:
            return
        (owner,) = (each for each in self.world.backends if each.name == entry.owner)
        is_well = owner.is_up and owner.is_configured and all(key in each.documents for each in owner.servers)
        is_well &= snapshot.observations[entry.owner].failure is None and owner.balance == "alone"
        is_well &= not self.world.cut
        is_well &= (entry.offer.provenance is Provenance.CONVERTED) == (owner.speaks == "v2")
        answer = await replica.answer(Request("GET", f"/openapi/v3/{key}"))
        if answer is None or replica.is_dead:
            return
        assert answer.status in (200, 404, 503), answer.status
        assert answer.status != 503 or not is_well, "503 while its owner is well and has it"

    async def _body(self, replica: Replica, key: str, hash: str) -> bytes:
        answer = await replica.answer(Request("GET", f"/openapi/v3/{key}", f"hash={hash}"))
        assert answer is not None
        assert answer.status == 200, f"{key} cannot be had: {answer.status} {answer.body!r}"
        return answer.body

    def _compare_told(self, log: ChangeLog) -> None:
        """What a follower was told stays told: the log of a later process has it under the same id."""
        for number, body in self.told.items():
            is_whole, entries = log.since(number - 1)
            if is_whole:
                assert entries, f"the change {number} was told, and the log never had it"
                assert (entries[0].id, entries[0].body) == (number, body), f"{number} is now another change"

    def _connect(self, follower: Follower) -> None:
        if follower.reading is not None:
            follower.reading.cancel()
        follower.reading = self.loop.create_task(self._read_events(follower))
        follower.reading.add_done_callback(self._note_end)

    def _note_end(self, reading: asyncio.Task[None]) -> None:
        failure = None if reading.cancelled() else reading.exception()
        if failure is not None:
            self.loop.failures.append(failure)

    async def _read_events(self, follower: Follower) -> None:
        """Take each event when it comes; connect again when the stream ends."""
        while True:
            replica = self.replicas[follower.replica]
            if replica.is_dead:
                await asyncio.sleep(1.0)
                continue
            queue = replica.history.followers.add(follower.kind, follower.view.since)
            assert queue is not None, "six followers are too many"
            try:
                while (event := await queue.next(60.0)) is not None:
                    if event is not SILENCE:
                        if event.name == "change":
                            self.told[event.id] = event.data
                        take_event(follower.view, event.name, event.id, orjson.loads(event.data))
            finally:
                replica.history.followers.remove(queue)
            if isinstance(follower.view, PublicationView):  # the stream ends with a reset
                follower.view.since = None

    def _wait(self, seconds: float) -> None:
        self._note_holdings()
        self._run(asyncio.sleep(seconds))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)


def _backend(number: int, kind: str) -> ModelBackend:
    name = "cba"[number]  # the order of names is not that of the configuration
    documents = dict.fromkeys(KEYS[: 1 + number], 1)
    match kind:
        case "requests" | "listed":
            servers = [ModelServer(dict(documents)), ModelServer(dict(documents))]
            return ModelBackend(name, servers, balance=kind)
        case "found" | "fallback":
            servers = [ModelServer(dict(documents))]
            return ModelBackend(name, servers, is_found=True, is_fallback=kind == "fallback")
        case _:
            return ModelBackend(name, [ModelServer(dict(documents))], speaks=kind)  # type: ignore[arg-type]


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_service_publishes_what_the_model_says() -> None:
    run_machine(ServiceMachine, examples=12, steps=25)


def test_what_comes_back_after_a_restart_without_anything_published_is_told() -> None:
    """The machine found it: seed 620, a restart between the removal of the last backend and its return."""
    machine = ServiceMachine()
    machine.begin(stand_in=None, excluded=frozenset(), seed=620, kinds=["v3"])
    machine.wait(16.0)
    machine.remove_or_add_backend(backend=0)
    machine.wait(16.0)
    machine.restart_replica(0, True, 0.0)
    machine.remove_or_add_backend(backend=0)
    machine.wait(16.0)
    machine.change_document(backend=0, server=0, key=KEYS[0])
    machine.wait(16.0)
    machine.nothing_failed()
    machine.teardown()


def test_what_a_cluster_gives_back_to_a_backend_is_published() -> None:
    """The machine found it: facts that a replica had at its start held for as long as it ran."""
    machine = ServiceMachine()
    machine.begin(stand_in=2, excluded=frozenset(), seed=291, kinds=["v3", "v3"])
    machine.change_facts(backend=1, excluded=frozenset(KEYS))
    machine.restart_replica(1, True, 0.0)
    machine.wait(16.0)
    machine.change_facts(backend=1, excluded=frozenset())
    machine.teardown()


def test_what_a_backend_removed_just_before_it_failed_goes() -> None:
    """The machine found it: the failure forgot what was missing, and the next check found nothing changed."""
    machine = ServiceMachine()
    machine.begin(stand_in=None, excluded=frozenset(), seed=0, kinds=["v3", "v3"])
    machine.remove_document(backend=1, key=KEYS[0], server=0)
    machine.read_all(replica=1)
    machine.change_health(backend=1, health="refuses", server=0)
    machine.read_all(replica=1)
    machine.teardown()


def test_what_is_new_at_a_backend_that_has_just_lost_v3_is_not_404() -> None:
    """The machine found it: a replica that has just started takes it for v2 at once; the other looks twice,
    and said meanwhile that there is no such document."""
    machine = ServiceMachine()
    machine.begin(stand_in=None, excluded=frozenset(), seed=65535, kinds=["v3", "v3"])
    machine.change_speech(backend=0, speaks="v2")
    machine.read_after_start(replica=0, seconds=0.0)
    machine.read_what_is_new(backend=0, key=KEYS[2], replica=0)
    machine.teardown()


def test_what_another_replica_has_of_a_backend_that_is_silent_here_is_not_404() -> None:
    """The machine found it: no check had ended when the client stopped waiting for it."""
    machine = ServiceMachine()
    machine.begin(stand_in=None, excluded=frozenset(), seed=0, kinds=["v3", "v3"])
    machine.freeze_way(backend=0, key=KEYS[0], replica=0, seconds=0.0)
    machine.read_what_is_new(backend=0, key=KEYS[2], replica=1)
    machine.teardown()
