"""The ways through the rooms that docs/architecture.md names, against the functions that are called."""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import CRDS, FakeCluster
from fakes.openapi_server import Reference
from fakes.openapi_thread import serving_in_thread
from repository.room_changes import changes_counted
from running.cluster_service import definition, serves
from running.service import QUICK, Client, backend, service
from specmux_aggregator.config.settings import ChangeSettings, DiscoverySettings
from specmux_cache import CacheOptions, SchemaCache
from specmux_cache.store.contents import INLINE_BYTES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
MOST_DECIDED, MOST_POLLED, MOST_REMEMBERED, MOST_SIMILAR = 10, 9, 5, 6
"""Modules of ours that a GET enters whose answer is in memory: a document's bytes decided anew, a 304 of the
root decided anew, remembered, and known again by what of it decides. The first two without ``heads``, which
is asked where a request with the same line is known."""
MOST_OF_A_CHANGE, MOST_OF_A_DEFINITION = 30, 30
"""Modules that a backend's change enters, its connections included, and an event of a definition, until it is
published; but for those that answer clients and follow discovery meanwhile."""
MOST_ROOM_CHANGES_OF_A_CHANGE = 40
"""Calls from one folder into another on that way."""
MOST_OF_A_STORED_DOCUMENT = 10
"""Modules of the client that a get enters of a document that is stored, without a background."""
FETCHES = 5
"""First fetches of which the cheapest counts: others have what else a service does in them."""
MOST_TASKS = 2
"""One of the client's connection, one of the fetch that goes on if the client leaves."""
FIRST_FETCHES = ((50_000, 315, 0), (1_400_000, 360, 1))
"""Bytes of a document, calls of our functions, and ways to a thread, where a large one is hashed."""
MOST_ROOM_CHANGES = 600
"""Calls from one folder into another while one object is validated with its definition."""
SETTLED = 0.3
"""Seconds for what a start leaves to be done beside it, which is on nobody's way."""
BESIDE = {"server", "endpoints", "api_discovery", "changes", "documents"}


def walk(title: str) -> set[str]:
    """The rooms of one walk, as the page lists them."""
    line = re.search(rf"^\* \*\*{re.escape(title)}\*\*: (.*?)\.(?: |$)", PAGE.read_text(), re.MULTILINE)
    assert line is not None, title
    return set(re.findall(r"`(\w+)`", line[1]))


@contextmanager
def modules_entered(package: str = "specmux_aggregator") -> Iterator[set[str]]:
    """The modules of the package of which a function is called meanwhile, in this thread."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith(f"{package}."):
            entered.add(name)

    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def rooms(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules}


APPS = "apis/apps/v1"
SELDOM = replace(QUICK, interval=60.0)
"""No check of a backend falls into what is looked at, unless it is asked for."""
QUIET: Any = {
    "polling": SELDOM,
    "changes": ChangeSettings(enabled=False),
    "discovery": DiscoverySettings(interval=60.0),
}

UNDISCOVERED: Any = {**QUIET, "discovery": DiscoverySettings(enabled=False)}
"""Documents that discovery does not confirm are fetched for it."""


async def entered_by(client: Client, url: str, status: int = 200, **fields: str) -> set[str]:
    """The modules that one GET enters, and whatever else the service does meanwhile."""
    with modules_entered() as entered:
        assert (await client.get(url, **fields))[0] == status
    return entered


BY_TIME = {"specmux_aggregator.model.failure", "specmux_aggregator.upstream.credentials"}
"""Looked at again after a while, whatever changes: whether a failure lasts, whether a token was exchanged."""
TURNS, MOST_TURNS = 3, 50
"""Turns of which a way is what all of them enter; more while it is too long. What else the
service does falls into some of them, on a machine that is busy into most."""
HEADS = {"specmux_aggregator.server.deciding_head"}


async def entered_by_all(
    turn: Callable[[int], Awaitable[set[str]]], most: int, counted: Callable[[set[str]], set[str]]
) -> set[str]:
    """The modules that every turn enters; ``counted``: those of them of which there may be ``most``."""
    entered = await turn(0)
    for number in range(1, MOST_TURNS):
        entered &= await turn(number)
        if number + 1 >= TURNS and len(counted(entered)) <= most:
            break
    return entered


def on_the_way(entered: set[str]) -> set[str]:
    return {name for name in entered if not rooms({name}) & BESIDE} - BY_TIME


async def entered_until_published(client: Client, change: Callable[[], object]) -> set[str]:
    before = client.app.publisher.current.generation
    with modules_entered() as entered:
        change()
        await client.until(
            lambda: client.app.publisher.current.generation > before, "the change is published"
        )
    await asyncio.sleep(SETTLED)
    return entered


def test_get_that_is_answered_from_memory() -> None:
    async def scenario() -> tuple[set[str], ...]:
        async with (
            serving(FakeAPIServer({APPS: document(APPS)})) as origin,
            service(backend("a", origin.url), **QUIET) as client,
        ):
            await client.says_ready()
            url = (await client.paths())[APPS]
            assert (await client.get(url))[0] == 200
            etag = (await client.get("/openapi/v3"))[1]["ETag"]
            await asyncio.sleep(SETTLED)
            ways: list[tuple[Callable[[int], Awaitable[set[str]]], int]] = [
                (lambda n: entered_by(client, url, **{"If-None-Match": f'"{n}"'}), MOST_DECIDED),
                (
                    lambda n: entered_by(client, "/openapi/v3", 304, **{"If-None-Match": f'"{n}", {etag}'}),
                    MOST_POLLED,
                ),
                (lambda _: entered_by(client, url), MOST_REMEMBERED),
                (lambda n: entered_by(client, url, **{"Audit-Id": f"{n}"}), MOST_SIMILAR),
            ]
            found = []
            for way, most in ways:
                for number in (-2, -1):  # the first are not known yet
                    await way(number)
                found.append(await entered_by_all(way, most, lambda entered: entered - HEADS))
            return tuple(found)

    decided, polled, remembered, similar = asyncio.run(scenario())
    assert len(decided - HEADS) <= MOST_DECIDED, sorted(decided)
    assert len(polled - HEADS) <= MOST_POLLED, sorted(polled)
    assert len(remembered) <= MOST_REMEMBERED, sorted(remembered)
    assert len(similar) <= MOST_SIMILAR, sorted(similar)
    assert rooms(decided) | {"auth"} == walk("A GET that is answered from memory")
    assert rooms(remembered) | rooms(similar) <= {"server", "endpoints", "http"}


@contextmanager
def calls_counted() -> Iterator[Counter[str]]:
    """Meanwhile and in this thread: calls of our functions, resumed coroutines included, tasks of ours, and
    ways to a thread and back."""
    counted: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        name = frame.f_code.co_qualname
        if _is_ours(frame):
            counted["calls"] += 1
        elif name == "BaseEventLoop.run_in_executor":
            counted["threads"] += 1
        elif name == "BaseEventLoop.create_task" and _is_ours(frame.f_locals["coro"].cr_frame):
            counted["tasks"] += 1

    sys.setprofile(note)
    try:
        yield counted
    finally:
        sys.setprofile(None)


def test_first_fetch_of_a_document() -> None:
    async def scenario(size: int) -> list[Counter[str]]:
        names = [f"apis/g{number}.example.com/v1" for number in range(FETCHES)]
        with serving_in_thread(Reference({name: sorted_document(name, size) for name in names})) as origin:
            async with service(backend("a", origin.url), **UNDISCOVERED) as client:
                await client.says_ready()
                paths = await client.paths()
                await asyncio.sleep(SETTLED)
                found = []
                for name in names:
                    with calls_counted() as counted:
                        assert (await client.get(paths[name]))[2] == sorted_document(name, size)
                    found.append(counted)
                return found

    for size, most_calls, most_threads in FIRST_FETCHES:
        found = asyncio.run(scenario(size))
        assert min(counted["tasks"] for counted in found) <= MOST_TASKS, found
        assert min(counted["threads"] for counted in found) <= most_threads, found
        assert min(counted["calls"] for counted in found) <= most_calls, found


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("specmux_")


def sorted_document(name: str, size: int) -> bytes:
    """With its version in the midst, as servers write it that sort keys."""
    ends = b'{"components":{"a":"%s"},"info":{"title":"%s","version":"1"},"openapi":"3.0.0","paths":{"%s":0}}'
    return ends % (b"a" * (size // 2), name.encode(), b"b" * (size // 2))


async def fewest_room_changes(client: Client, origin: FakeAPIServer) -> Counter[tuple[str, str]]:
    """Of several changes the one with the fewest, but for rooms beside the way: what else the service does
    falls into some."""
    fewest: Counter[tuple[str, str]] | None = None
    for turn in range(MOST_TURNS):
        origin.documents = {APPS: document(APPS, f"changed again {turn}")}
        before = client.app.publisher.current.generation
        with changes_counted() as found:
            client.app.backends.poke(backend("a", origin.url).name)
            await client.until(
                lambda before=before: client.app.publisher.current.generation > before, "published"
            )
        await asyncio.sleep(SETTLED)
        on_way = Counter({pair: count for pair, count in found.items() if not rooms_of(pair) & BESIDE})
        if fewest is None or sum(on_way.values()) < sum(fewest.values()):
            fewest = on_way
        if turn + 1 >= TURNS and sum(fewest.values()) <= MOST_ROOM_CHANGES_OF_A_CHANGE:
            break
    assert fewest is not None
    return fewest


def rooms_of(pair: tuple[str, str]) -> set[str]:
    return {each.partition("specmux_aggregator.")[2].partition(".")[0] for each in pair}


def test_change_of_a_backend() -> None:
    async def scenario() -> tuple[set[str], Counter[tuple[str, str]]]:
        origin = FakeAPIServer({APPS: document(APPS)})
        async with serving(origin), service(backend("a", origin.url), polling=SELDOM) as client:
            await client.says_ready()
            await asyncio.sleep(SETTLED)

            async def change(turn: int) -> set[str]:
                origin.documents = {APPS: document(APPS, f"changed {turn}")}
                poke = partial(client.app.backends.poke, backend("a", origin.url).name)
                return await entered_until_published(client, poke)

            entered = await entered_by_all(change, MOST_OF_A_CHANGE, on_the_way)
            return entered, await fewest_room_changes(client, origin)

    entered, changes = asyncio.run(scenario())
    assert walk("A change of a backend") <= rooms(entered)
    assert len(on_the_way(entered)) <= MOST_OF_A_CHANGE, "\n".join(sorted(on_the_way(entered)))
    assert sum(changes.values()) <= MOST_ROOM_CHANGES_OF_A_CHANGE, changes.most_common()


def test_event_of_a_definition() -> None:
    async def scenario() -> set[str]:
        async with FakeCluster({APPS: document(APPS)}) as cluster:
            cluster.put(CRDS, definition("Widget"))
            async with serves(
                cluster, settings={"polling": SELDOM, "discovery": DiscoverySettings(interval=60.0)}
            ) as client:
                await asyncio.sleep(SETTLED)

                async def change(turn: int) -> set[str]:
                    put = partial(cluster.put, CRDS, definition("Widget", description=f"changed {turn}"))
                    return await entered_until_published(client, put)

                return await entered_by_all(change, MOST_OF_A_DEFINITION, on_the_way)

    entered = asyncio.run(scenario())
    # The worker process builds: of build only what hands it the work is entered here.
    assert walk("An event of a CustomResourceDefinition") <= rooms(entered)
    assert len(on_the_way(entered)) <= MOST_OF_A_DEFINITION, "\n".join(sorted(on_the_way(entered)))


@pytest.mark.parametrize("length", [1, 2 * INLINE_BYTES], ids=["in its row", "in a file"])
def test_client_gets_a_stored_document(tmp_path: Path, length: int) -> None:
    options = CacheOptions(directory=tmp_path, root_ttl=60.0)
    title = random.Random(length).randbytes(length).hex()
    body = b'{"openapi":"3.0.0","info":{"title":"%s","version":"1"},"paths":{}}' % title.encode()
    with serving_in_thread(Reference({APPS: body})) as server:
        for _ in range(2):
            with SchemaCache(server.url, options, background=False) as cache:
                cache.paths()
                with modules_entered("specmux_cache") as entered:
                    assert cache.schema(APPS).body == body
    assert len(entered) <= MOST_OF_A_STORED_DOCUMENT, sorted(entered)


OBJECT_AND_DEFINITION = {
    "crd.yaml": """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, maximum: 10}
              name: {type: string, maxLength: 20, pattern: "^[a-z]+$"}
              tags: {type: array, maxItems: 10, items: {type: string, maxLength: 10}}
            x-kubernetes-validations:
            - {rule: "self.size <= 5 || has(self.name)", message: too big without a name}
""",
    "widget.yaml": """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, namespace: default}
spec: {size: 7, name: abc, tags: [a, b]}
""",
}


def test_an_object_goes_through_the_validator_once(tmp_path: Path) -> None:
    """``specmux validate`` as a process, imports left out: 1,201 before ``Body`` and ``Operation``."""
    for name, text in OBJECT_AND_DEFINITION.items():
        (tmp_path / name).write_text(text)
    arguments = ("validate", "--file", tmp_path / "crd.yaml", tmp_path / "widget.yaml")
    count = [sys.executable, Path(__file__).with_name("room_changes.py"), *arguments]
    done = subprocess.run(count, capture_output=True, text=True, check=True)
    assert 100 < int(done.stdout.split(maxsplit=1)[0]) <= MOST_ROOM_CHANGES, done.stdout
