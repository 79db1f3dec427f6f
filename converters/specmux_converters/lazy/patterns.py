"""Regular expressions that are compiled when they are first used.

``re.compile`` takes 0.05 to 0.4 ms; a command imports some forty patterns and uses a third of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

__all__ = ["pattern"]

if TYPE_CHECKING:  # type checkers see the standard function
    from re import compile as pattern
else:

    class _CompiledPattern:
        """Has the members of an ``re.Pattern`` as its own: a call takes 15 ns more, and 60 in a class that
        waits for members."""

    class pattern:  # noqa: N801  (it is called like a function)
        """Made of the arguments of ``re.compile``; not for functions that take an ``re.Pattern``."""

        def __init__(self, text: str | bytes, flags: int = 0) -> None:
            self._given = text, flags

        def __getattr__(self, name: str) -> Any:
            compiled = re.compile(*self._given)
            self.__class__ = _CompiledPattern
            vars(self).update({each: getattr(compiled, each) for each in _MEMBERS})
            return getattr(compiled, name)


_MEMBERS: Final = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))
