"""Functions that the service mounts by name, compared with what stands there."""

from __future__ import annotations

import pytest

from specmux_aggregator import mounts
from specmux_aggregator.mounts import NamedFunction
from specmux_aggregator.reader import requests
from specmux_tools.explanation.tree import MOST_DEPTH
from specmux_tools.search_index.query import MOST_OFFSET, MOST_ROWS
from specmux_tools.search_index.words import MOST_CHARACTERS
from specmux_tools.validation.requests import READ

NAMED = [
    *mounts.READER.values(),
    mounts.VALIDATION,
    mounts.DIFFERENCES,
    mounts.CHANGES_AS_TEXT,
    mounts.JSON_SCHEMAS,
    mounts.DOCUMENT_CHECK,
]


@pytest.mark.parametrize("target", NAMED)
def test_mounted_function_is_there(target: str) -> None:
    # Called without arguments, a function that exists names those that it misses.
    with pytest.raises(TypeError, match=r"missing .* required positional argument"):
        NamedFunction(target)()


def test_bounds_of_requests_are_those_of_the_tools() -> None:
    assert requests.DEPTH_MAX == MOST_DEPTH
    assert (requests.ROWS_MAX, requests.OFFSET_MAX) == (MOST_ROWS, MOST_OFFSET)
    assert requests.WORDS_MAX == MOST_CHARACTERS
    assert tuple(f"application/{form}" for form in READ) == requests.BODY_TYPES
