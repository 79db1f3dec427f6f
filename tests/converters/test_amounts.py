"""Amounts as people read them."""

from __future__ import annotations

import pytest

from specmux_converters.counted_nouns import counted, size


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (2, "group-version", "2 group-versions"),
        (2, "entry", "2 entries"),
        (1, "loss", "1 loss"),
        (2, "loss", "2 losses"),
        (2, "Ingress", "2 Ingresses"),
        (3, "NetworkPolicy", "3 NetworkPolicies"),
        (2, "Endpoints", "2 Endpoints"),
    ],
)
def test_nouns_agree_with_their_number(count: int, noun: str, said: str) -> None:
    assert counted(count, noun) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_500_000, "1.4 MiB"), (52_000_000_000, "48.4 GiB")],
)
def test_sizes_are_in_the_largest_unit(number: int, said: str) -> None:
    assert size(number) == said
