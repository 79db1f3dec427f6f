from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, JSON, PROTOBUF


def key(name: str) -> DocumentKey:
    return DocumentKey(BackendName("b"), GroupVersion(f"apis/{name}/v1"), Hash(name))


def store(max_bytes: int) -> Representations:
    return Representations(max_bytes=max_bytes)


def test_least_recently_used_form_goes_first() -> None:
    kept = store(30)
    for name in "abc":
        kept.put(key(name), JSON, Coding.IDENTITY, b"x" * 10)
    assert kept.get(key("a"), JSON, Coding.IDENTITY)
    assert kept.evicting_rounds == 0
    kept.put(key("d"), JSON, Coding.IDENTITY, b"x" * 10)
    assert kept.get(key("b"), JSON, Coding.IDENTITY) is None
    assert kept.get(key("a"), JSON, Coding.IDENTITY)
    assert kept.evicting_rounds == 1


def test_identity_form_that_gzip_can_bring_back_goes_before_older_ones() -> None:
    kept = store(30)
    kept.put(key("old"), JSON, Coding.GZIP, b"x" * 10)
    kept.put(key("new"), JSON, Coding.IDENTITY, b"x" * 15)
    kept.put(key("new"), JSON, Coding.GZIP, b"x" * 3)
    kept.put(key("more"), JSON, Coding.GZIP, b"x" * 10)
    assert kept.get(key("new"), JSON, Coding.IDENTITY) is None
    assert kept.get(key("new"), JSON, Coding.GZIP)
    assert kept.get(key("old"), JSON, Coding.GZIP)


def test_pinned_form_outlives_any_pressure() -> None:
    kept = store(10)
    kept.put(key("built"), JSON, Coding.GZIP, b"x" * 50, pin=True)
    for name in "abcdef":
        kept.put(key(name), JSON, Coding.IDENTITY, b"x" * 5)
    assert kept.get(key("built"), JSON, Coding.GZIP)
    assert kept.usage().pinned_bytes == 50


def test_shedding_lets_go_of_half_identity_forms_that_can_come_back_first() -> None:
    kept = store(1000)
    kept.put(key("pinned"), JSON, Coding.GZIP, b"x" * 100, pin=True)
    kept.put(key("a"), JSON, Coding.GZIP, b"x" * 10)
    kept.put(key("a"), JSON, Coding.IDENTITY, b"x" * 60)
    kept.put(key("b"), CBOR, Coding.IDENTITY, b"x" * 30)
    assert kept.shed() == 1
    assert kept.get(key("a"), JSON, Coding.IDENTITY) is None
    assert kept.get(key("a"), JSON, Coding.GZIP)
    assert kept.get(key("b"), CBOR, Coding.IDENTITY)
    assert kept.evicting_rounds == 1
    assert (kept.usage().sheddings, kept.usage().evictions) == (1, 0)


def test_shedding_goes_on_until_only_pinned_forms_are_left() -> None:
    kept = store(1000)
    kept.put(key("pinned"), JSON, Coding.GZIP, b"x" * 100, pin=True)
    for name in "abcdefgh":
        kept.put(key(name), JSON, Coding.GZIP, b"x" * 10)
    assert [kept.shed() for _ in range(6)] == [4, 2, 1, 1, 0, 0]
    assert kept.usage().bytes == kept.usage().pinned_bytes == 100
    assert kept.get(key("pinned"), JSON, Coding.GZIP)
    assert kept.evicting_rounds == 4
    kept.put(key("a"), JSON, Coding.GZIP, b"x" * 10)
    assert kept.get(key("a"), JSON, Coding.GZIP)


def test_superseded_documents_go_with_all_their_forms() -> None:
    kept = store(1000)
    for name in "ab":
        kept.put(key(name), JSON, Coding.GZIP, b"x" * 10, pin=True)
        kept.put(key(name), CBOR, Coding.IDENTITY, b"x" * 10)
        kept.refuse(key(name), PROTOBUF, "no form")
    kept.keep_only({key("b")})
    assert kept.get(key("a"), JSON, Coding.GZIP) is None
    assert kept.refusal_of(key("a"), PROTOBUF) is None
    assert kept.refusal_of(key("b"), PROTOBUF) == "no form"
    assert kept.usage().bytes == 20


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"), st.sampled_from(list(Coding)), st.integers(0, 40), st.booleans()
        ),
        max_size=60,
    )
)
def test_bound_holds_after_every_put(puts: list[tuple[str, Coding, int, bool]]) -> None:
    kept = store(100)
    for name, coding, size, pin in puts:
        kept.put(key(name), JSON, coding, b"x" * size, pin=pin)
        usage = kept.usage()
        assert usage.bytes <= max(100, usage.pinned_bytes) + 40  # the form just put is never the victim
        held = [kept.get(key(n), JSON, c) for n in "abcdef" for c in Coding]
        assert sum(len(body) for body in held if body) == usage.bytes


def test_form_made_by_chance_is_kept_for_good_once_it_is_pinned() -> None:
    kept = store(20)
    kept.put(key("built"), JSON, Coding.GZIP, b"x" * 10)
    kept.put(key("built"), JSON, Coding.GZIP, b"x" * 10, pin=True)
    assert kept.usage().bytes == kept.usage().pinned_bytes == 10
    for name in "abc":
        kept.put(key(name), JSON, Coding.IDENTITY, b"x" * 10)
    assert kept.get(key("built"), JSON, Coding.GZIP)


def test_nobody_is_told_of_evictions_when_there_was_nothing_to_evict() -> None:
    kept = store(0)
    kept.put(key("built"), JSON, Coding.GZIP, b"x", pin=True)
    assert kept.evicting_rounds == 0
