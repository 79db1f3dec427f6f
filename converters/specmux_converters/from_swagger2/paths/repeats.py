"""Convert equal texts of many operations once: parameters and lists of them, responses, bodies.

A result is reused if conversion recorded nothing except referenced components and its cost: losses concern
one place, and the target of a foreign reference is not part of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar

import orjson

from specmux_converters.document import canonical
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.memory import in_own_memory

T = TypeVar("T")
D = TypeVar("D", bound=Hashable)

Json: TypeAlias = orjson.Fragment | dict[str, Any]
"""An object of the output, encoded or not."""

Make: TypeAlias = Callable[[Any, D, SwaggerSource, Trace], T]


def encode_result(make: Make[D, Any]) -> Make[D, orjson.Fragment]:
    """``make`` with its result as canonical JSON, so that repeated output is encoded once."""

    def made(node: Any, depends_on: D, source: SwaggerSource, trace: Trace) -> orjson.Fragment:
        text = canonical(make(node, depends_on, source, trace), *trace.path)
        return orjson.Fragment(in_own_memory(text))

    return made


def convert_repeated(make: Make[D, T], node: Any, depends_on: D, source: SwaggerSource, trace: Trace) -> T:
    """The result of ``make`` for ``node``, shared by all nodes with equal text: treat it as read-only.

    ``depends_on``: inputs other than the text. ``make`` gets a trace at the same place.
    """
    result: T
    try:
        text = orjson.dumps(node)
    except orjson.JSONEncodeError:  # impossible in a parsed document; an error with its pointer follows
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
