"""What stands in many operations with the same text is converted once: parameters and lists of them,
responses, bodies.

A result is used again when nothing was noted on the way but the components it refers to and its cost: losses
point at one place, and what a foreign reference finds is no part of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

import orjson

from specmux_converters.own_memory import in_own_memory
from specmux_converters.swagger2.reading.encoding import encode
from specmux_converters.swagger2.reading.source import SwaggerSource
from specmux_converters.swagger2.reading.trace import Trace

T = TypeVar("T")
D = TypeVar("D", bound=Hashable)

Json: TypeAlias = orjson.Fragment | dict[str, Any]
"""An object of the output, encoded or not."""

Make: TypeAlias = Callable[[Any, D, SwaggerSource, Trace], T]


def encoding(make: Make[D, Any]) -> Make[D, orjson.Fragment]:
    """``make``, with its result as canonical JSON: what is written out many times is encoded once."""

    def made(node: Any, depends_on: D, source: SwaggerSource, trace: Trace) -> orjson.Fragment:
        text = encode(make(node, depends_on, source, trace), *trace.path)
        return orjson.Fragment(in_own_memory(text))

    return made


def repeated(make: Make[D, T], node: Any, depends_on: D, source: SwaggerSource, trace: Trace) -> T:
    """What ``make`` makes of ``node``, for all nodes with this text the same: read it, never write into it.

    ``depends_on`` is what counts beside the text. ``make`` is given a trace to note into, at the same place.
    """
    result: T
    try:
        text = orjson.dumps(node)
    except orjson.JSONEncodeError:  # in no parsed document: an error with its pointer comes later
        return make(node, depends_on, source, trace)
    kept = source.repeats.get((make, depends_on, text))
    if kept is not None:
        result, refs, cost = kept
        if refs:
            trace.refs |= refs
        if cost:
            trace.spend(cost)
        return result
    notes = Trace.begin(trace.path, trace.budget)
    left = trace.budget.left
    result = make(node, depends_on, source, notes)
    trace.take(notes)
    if not notes.losses and not notes.foreign:
        cost = left - trace.budget.left
        source.repeats[make, depends_on, in_own_memory(text)] = result, frozenset(notes.refs), cost
    return result
