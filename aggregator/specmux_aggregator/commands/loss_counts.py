"""Losses in one line, for people who have not asked for the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from specmux_converters.errors import cut
from specmux_converters.losses import Loss

_KINDS_MAX: Final = 5


def counted(losses: Sequence[Loss]) -> str:
    """``3 losses: 2 × schemes, 1 × security``, the most frequent kinds first."""
    kinds = Counter(loss.construct for loss in losses)
    listed = ", ".join(f"{count} × {cut(kind)}" for kind, count in kinds.most_common(_KINDS_MAX))
    more = f" and {len(kinds) - _KINDS_MAX} other kinds" if len(kinds) > _KINDS_MAX else ""
    noun = "loss" if len(losses) == 1 else "losses"
    return f"{len(losses)} {noun}: {listed}{more}"
