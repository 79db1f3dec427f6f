"""Formats and the package's own expressions take time linear in the text, whatever the text."""

from __future__ import annotations

import importlib
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import specmux_tools.validation
from specmux_converters.go.regexp import Pattern
from specmux_tools.validation.schema.formats import FORMATS
from specmux_tools.validation.schema.scalars import quantity_fault

pytestmark = pytest.mark.long

SIZE = 100_000
CPU_SECONDS = 5.0
"""Of this process, for all shapes: a hundred times what is needed. Quadratic time takes minutes."""

UNITS = (
    *("a", "1", "a-", "a.", "1.", "-", ".", ":", "a:", "1:", "0", "http://a", "=", "AAAA", " ", "1h", "h"),
    *("%41", "[", "a@", "\u00e9", "$", "f", "rgb(1,", "1 ", '"', '\\"', "(", "a <", "1_", "()", "\ud800"),
)
TAILS = ("", "!", "-", ".", "\n", "_")
SHAPES = [(unit * SIZE)[:SIZE] + tail for unit in UNITS for tail in TAILS]
PREFIXES = ("", ".", "a@", "1e")


@contextmanager
def limited_cpu(seconds: float) -> Iterator[None]:
    def end(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} s of CPU")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_ends_with_each_shape(name: str) -> None:
    with limited_cpu(CPU_SECONDS):
        for shape in SHAPES:
            FORMATS[name](shape)


def test_a_helpdesk_is_no_address_and_an_underscore_no_host() -> None:
    accepts = FORMATS
    with limited_cpu(CPU_SECONDS):
        assert not accepts["email"]("please-write-to-the-helpdesk-team-of-our-company")
        assert not accepts["hostname"]("a-host-with-an_underscore-and-a-long-name-behind-it")


def _matchers() -> list[tuple[str, Callable[[Any], object], bool]]:
    found = {}
    for module in pkgutil.walk_packages(specmux_tools.validation.__path__, "specmux_tools.validation."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                found[f"{module.name.rpartition('.')[2]}.{name}"] = value
    return [(name, each.fullmatch, isinstance(each.pattern, bytes)) for name, each in sorted(found.items())]


MATCHERS = _matchers()


@pytest.mark.parametrize(
    ("matches", "is_bytes"), [each[1:] for each in MATCHERS], ids=[m[0] for m in MATCHERS]
)
def test_each_expression_ends_with_each_shape(matches: Callable[[Any], object], is_bytes: bool) -> None:
    with limited_cpu(CPU_SECONDS):
        for prefix in PREFIXES:
            for shape in SHAPES[:: len(TAILS)] if prefix else SHAPES:
                text = f"{prefix}{shape}x"
                matches(text.encode("utf-8", "replace") if is_bytes else text)


@pytest.mark.long
@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|aa)+$", r"^(\w+\.?)*@", "a{50}b", "(.*)(.*)(.*)x$"])
def test_each_pattern_ends_with_each_shape(pattern: str) -> None:
    compiled = Pattern(pattern)
    with limited_cpu(4 * CPU_SECONDS):
        for shape in SHAPES:
            compiled.matches(shape)


def test_quantities_of_many_digits() -> None:
    with limited_cpu(CPU_SECONDS):
        assert quantity_fault("1" * SIZE) is None
        assert quantity_fault("1" * SIZE + "x") is not None
        assert quantity_fault("1e" + "1" * SIZE) == "unable to parse quantity's suffix"
        assert quantity_fault("1e" + "0" * SIZE + "3") is None


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("a@b", True),
        ("Ann <a@b.c>", True),
        ("<a@b>", True),
        ('"a b"@c', True),
        ('""@c', False),
        ("a@[192.0.2.1]", True),
        ("a@[fe80::1%eth0]", False),
        ("a@[nowhere]", False),
        ("a@b>", False),
        ("<a@b", False),
        ("a..b@c", False),
        (".a@c", False),
        ("a@c.", False),
        ("a@b, c@d", False),
        ("team: a@b;", True),
        ("team: a@b, c@d;", False),
        ("team:;", False),
        ("a@b (the (inner) one)", True),
        ("a@b (open", False),
        ("J\u00fcrgen <j\u00fc@example.org>", True),
        ("a b", False),
        ("", False),
        ("a@ b", True),
        ("a.b <x@y>", True),
    ],
)
def test_mail_addresses_as_go_reads_them(text: str, is_good: bool) -> None:
    assert FORMATS["email"](text) is is_good
