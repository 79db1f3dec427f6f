"""Losses and notes for people: how many in one line, or listed, with the notes of one kind in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from specmux_converters import counted_nouns as amounts
from specmux_converters.errors import cut
from specmux_converters.losses import Grade, Loss

_KINDS_MAX: Final = 5
_NAMED_MAX: Final = 3
"""Places of one kind of note that are named."""


def count_losses(losses: Sequence[Loss]) -> str:
    """``2 losses: 2 × default; 1067 notes: 1067 × operation schemes``, the most frequent kinds first."""
    grades = {loss.grade for loss in losses}
    return "; ".join(_count_grade(grade, losses) for grade in (Grade.LOSS, Grade.NOTE) if grade in grades)


def list_losses(losses: Sequence[Loss]) -> Iterator[str]:
    """Lines: one for each loss, then one for all notes that say the same."""
    notes: dict[tuple[str, str], list[str]] = {}
    for loss in losses:
        if loss.grade is Grade.LOSS:
            yield f"{_place(loss)}: {cut(loss.construct)}: {loss.reason}"
        else:
            notes.setdefault((loss.construct, loss.reason), []).append(_place(loss))
    for (construct, reason), places in notes.items():
        named = amounts.listed(places, _NAMED_MAX)
        yield f"note, {len(places)} × {cut(construct)}: {reason} ({named})"


def _place(loss: Loss) -> str:
    return cut(loss.pointer) or "(document)"


def _count_grade(grade: Grade, losses: Sequence[Loss]) -> str:
    kinds = Counter(loss.construct for loss in losses if loss.grade is grade)
    shown = [f"{count} × {cut(kind)}" for kind, count in kinds.most_common()]
    named = amounts.listed(shown, _KINDS_MAX)
    return f"{amounts.counted(kinds.total(), grade.value)}: {named}"
