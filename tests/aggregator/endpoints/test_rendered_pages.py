"""Pages that were rendered before: which are kept, which go, and how many bytes they hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.http.messages import ETag
from specmux_aggregator.questions.rendered_pages import RenderedPages


def test_page_that_was_asked_for_last_stays() -> None:
    pages = RenderedPages(most_bytes=80)
    for name in "abcdefgh":
        pages.keep(ETag(name), name.encode() * 10)
    assert pages.get(ETag("a")) == b"a" * 10
    pages.keep(ETag("i"), b"i" * 10)
    assert pages.get(ETag("b")) is None
    assert pages.get(ETag("a")) == b"a" * 10
    assert pages.held == 80


def test_large_page_is_not_kept() -> None:
    pages = RenderedPages(most_bytes=80)
    pages.keep(ETag("a"), b"x" * 11)
    assert (pages.get(ETag("a")), pages.held) == (None, 0)


@given(st.lists(st.tuples(st.sampled_from("abcdefghijkl"), st.integers(0, 12), st.booleans()), max_size=200))
def test_bytes_held_are_those_of_the_bodies_and_never_too_many(
    steps: list[tuple[str, int, bool]],
) -> None:
    pages = RenderedPages(most_bytes=64)
    for name, size, is_kept in steps:
        if is_kept:
            pages.keep(ETag(name), b"x" * size)
        else:
            pages.get(ETag(name))
        bodies = [pages.get(ETag(each)) for each in "abcdefghijkl"]
        assert pages.held == sum(len(body) for body in bodies if body is not None) <= 64
