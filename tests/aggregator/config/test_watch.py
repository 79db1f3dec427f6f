"""A configuration that changes under a running service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx

from deadline import DEADLINE
from specmux_aggregator.config import watch as config_watch
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.config.watch import watch_config
from specmux_aggregator.errors import InvalidConfig

INTERVAL = 0.02


class Watched:
    """The items of a watcher, one at a time."""

    def __init__(self, items: AsyncIterator[Settings | InvalidConfig], reread: asyncio.Event) -> None:
        self._items = items
        self.reread = reread

    async def next(self) -> Settings | InvalidConfig:
        async with asyncio.timeout(DEADLINE):
            return await anext(self._items)

    async def names(self) -> list[str]:
        settings = await self.next()
        assert isinstance(settings, Settings), settings
        return [backend.name for backend in settings.backends]

    async def quiet(self, looks: int = 10) -> bool:
        """Nothing comes in the time of so many looks."""
        waiting = asyncio.ensure_future(anext(self._items))
        done, _ = await asyncio.wait([waiting], timeout=looks * INTERVAL)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return not done


@asynccontextmanager
async def watching(path: Path, *, current: Settings | None = None) -> AsyncIterator[Watched]:
    source = ConfigSource(file=path)
    reread = asyncio.Event()
    start = source.read() if current is None else current
    items = watch_config(source, start, reread=reread, interval=INTERVAL)
    try:
        yield Watched(items, reread)
    finally:
        await items.aclose()  # type: ignore[attr-defined]


def text_of(*names: str) -> str:
    return "backends:\n" + "".join(f"- {{name: {name}, url: 'http://{name}'}}\n" for name in names)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "specmux.yaml"
    path.write_text(text_of("a"))
    return path


@pytest.fixture(autouse=True)
def settle_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_watch, "SETTLING", INTERVAL)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def test_change_in_place_is_noticed(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text(text_of("a", "b"))
            assert await watched.names() == ["a", "b"]
            path.write_text(text_of("b"))
            assert await watched.names() == ["b"]

    run(scenario)


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "polling: {interval: 3}\n", "backends:\n", "backends: null\n"]
)
def test_file_that_says_nothing_of_backends_any_more_is_refused(path: Path, text: str) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text(text)
            refused = await watched.next()
            assert isinstance(refused, InvalidConfig)
            assert "backends: []" in str(refused)
            path.write_text("backends: []\n")
            assert await watched.names() == []
            path.write_text("# nothing again\n")
            assert await watched.quiet()

    run(scenario)


def test_file_that_is_cut_where_it_stands_is_refused_until_it_is_whole(path: Path) -> None:
    text = text_of("a", "b", "c")

    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text(text)
            assert await watched.names() == ["a", "b", "c"]
            lines = text.splitlines(keepends=True)
            for number in (3, 2):
                path.write_text("".join(lines[:number]))
                refused = await watched.next()
                assert isinstance(refused, InvalidConfig)
                assert "was cut" in str(refused)
            watched.reread.set()
            assert isinstance(await watched.next(), InvalidConfig)
            path.write_text(text_of("a", "b", "c", "d"))
            assert await watched.names() == ["a", "b", "c", "d"]

    run(scenario)


def test_file_that_is_renamed_into_place_may_be_the_beginning_of_what_it_was(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text(text_of("a", "b"))
            assert await watched.names() == ["a", "b"]
            new = path.with_name("new")
            new.write_text(text_of("a"))
            new.rename(path)
            assert await watched.names() == ["a"]

    run(scenario)


def test_pipe_in_the_place_of_the_file_is_refused_and_keeps_nothing_waiting(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.unlink()
            os.mkfifo(path)
            refused = await watched.next()
            assert isinstance(refused, InvalidConfig)
            assert "not a regular file" in str(refused)
            path.unlink()
            path.write_text(text_of("b"))
            assert await watched.names() == ["b"]

    run(scenario)


def test_configmap_swap_is_noticed(tmp_path: Path) -> None:
    """The kubelet's way: FILE -> ..data/FILE, ..data -> ..generation, and ..data replaced by rename."""

    def publish(generation: str, text: str) -> None:
        (tmp_path / generation).mkdir()
        (tmp_path / generation / "specmux.yaml").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(generation)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    publish("..1", text_of("a"))
    path = tmp_path / "specmux.yaml"
    path.symlink_to("..data/specmux.yaml")

    async def scenario() -> None:
        async with watching(path) as watched:
            publish("..2", text_of("b"))
            assert await watched.names() == ["b"]

    run(scenario)


def test_change_that_keeps_size_and_time_is_noticed(path: Path) -> None:
    async def scenario() -> None:
        before = path.stat()
        async with watching(path) as watched:
            path.write_text(text_of("b"))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            assert await watched.names() == ["b"]

    run(scenario)


def test_change_between_reading_and_watching_is_not_lost(path: Path) -> None:
    async def scenario() -> None:
        current = ConfigSource(file=path).read()
        path.write_text(text_of("b"))
        async with watching(path, current=current) as watched:
            assert await watched.names() == ["b"]

    run(scenario)


def test_broken_file_is_told_once_and_then_its_repair(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text("backends: [")
            broken = await watched.next()
            assert isinstance(broken, InvalidConfig)
            assert f"{path}:" in str(broken)
            assert await watched.quiet()

    async def repair() -> None:
        async with watching(path, current=Settings()) as watched:
            assert isinstance(await watched.next(), InvalidConfig)
            path.write_text(text_of("a"))
            assert await watched.names() == ["a"]

    run(scenario)
    run(repair)


def test_return_to_what_was_in_force_is_told_after_a_broken_file(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text("nonsense")
            assert isinstance(await watched.next(), InvalidConfig)
            path.write_text(text_of("a"))
            assert await watched.names() == ["a"]

    run(scenario)


def test_vanished_file_is_told_and_its_return(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.unlink()
            vanished = await watched.next()
            assert isinstance(vanished, InvalidConfig)
            assert "No such file" in str(vanished)
            path.write_text(text_of("a"))
            assert await watched.names() == ["a"]

    run(scenario)


def test_nothing_is_told_when_only_a_comment_changed(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path) as watched:
            path.write_text(f"# a comment\n{text_of('a')}")
            assert await watched.quiet()

    run(scenario)


def test_half_written_file_is_not_taken_for_a_configuration(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is still growing is not read as the shorter configuration it is for a moment."""
    monkeypatch.setattr(config_watch, "SETTLING", 0.5)

    async def scenario() -> None:
        async with watching(path) as watched:
            waiting = asyncio.ensure_future(watched.next())
            names = [f"b{number}" for number in range(10)]
            for count in range(1, len(names) + 1):
                path.write_text(text_of(*names[:count]))
                await asyncio.sleep(INTERVAL / 2)
            settings = await waiting
            assert isinstance(settings, Settings)
            assert len(settings.backends) == 10

    run(scenario)


def test_signal_rereads_at_once_and_always_answers(path: Path) -> None:
    async def scenario() -> None:
        source = ConfigSource(file=path)
        reread = asyncio.Event()
        items = watch_config(source, source.read(), reread=reread, interval=3600)
        watched = Watched(items, reread)
        reread.set()
        assert await watched.names() == ["a"]
        waiting = asyncio.ensure_future(watched.names())
        await asyncio.sleep(INTERVAL)
        path.write_text(text_of("b"))
        reread.set()
        assert await waiting == ["b"]
        assert not reread.is_set()
        await items.aclose()  # type: ignore[attr-defined]

    run(scenario)


def test_without_a_file_only_the_signal_is_waited_for() -> None:
    async def scenario() -> None:
        reread = asyncio.Event()
        items = watch_config(ConfigSource(), Settings(), reread=reread, interval=INTERVAL)
        watched = Watched(items, reread)
        reread.set()
        assert await watched.next() == Settings()
        assert await watched.quiet()

    run(scenario)


def test_looking_does_not_block_the_event_loop(path: Path) -> None:
    async def scenario() -> None:
        async with watching(path, current=Settings()) as watched:
            with blockbuster_ctx():
                assert await watched.names() == ["a"]

    run(scenario)


@pytest.mark.parametrize("turns", range(4))
def test_cancellation_is_not_lost_when_a_signal_comes_with_it(turns: int) -> None:
    async def scenario() -> None:
        reread = asyncio.Event()

        async def follow() -> None:
            async for _ in watch_config(ConfigSource(), Settings(), reread=reread, interval=INTERVAL):
                pass

        following = asyncio.create_task(follow())
        await asyncio.sleep(INTERVAL / 2)
        reread.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.wait([following], timeout=5)
        assert following.cancelled()

    run(scenario)
