"""Count the losses of a conversion per document, and name the first ones. Pure.

A loss in a shared construct concerns every document, so a document keeps a count and a few lines, not the
losses: ten thousand documents may share a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from specmux_converters.group_versions import GroupVersion, group_version_of
from specmux_converters.losses import Grade, Loss, unescape
from specmux_converters.outlines import Outline

NAMED: Final = 10
"""Losses of one document that are named; all are counted."""


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of one document."""

    count: int = 0
    named: tuple[str, ...] = ()

    def with_one(self, loss: Loss) -> Losses:
        if len(self.named) == NAMED:
            return Losses(self.count + 1, self.named)
        return Losses(self.count + 1, (*self.named, f"{loss.pointer}: {loss.construct}: {loss.reason}"))

    def __add__(self, other: Losses) -> Losses:
        return Losses(self.count + other.count, (*self.named, *other.named)[:NAMED])


def losses_of(losses: Iterable[Loss]) -> Losses:
    """The losses of one document; notes do not count."""
    found = Losses()
    for loss in losses:
        if loss.grade is Grade.LOSS:
            found = found.with_one(loss)
    return found


def losses_by_group_version(
    outlines: Mapping[GroupVersion, Outline], losses: Iterable[Loss]
) -> dict[GroupVersion, Losses]:
    """Assign each loss to every document that contains its construct; notes do not count."""
    of_all = Losses()
    of_paths: dict[GroupVersion | None, Losses] = {}
    of_schemas: dict[str, Losses] = {}
    for loss in losses:
        if loss.grade is not Grade.LOSS:
            continue
        _, kind, *rest = [*loss.pointer.split("/"), ""]
        name = unescape(rest[0]) if rest else ""
        if kind == "paths":
            key = group_version_of(name)
            of_paths[key] = of_paths.get(key, Losses()).with_one(loss)
        elif kind == "definitions":
            of_schemas[name] = of_schemas.get(name, Losses()).with_one(loss)
        else:
            of_all = of_all.with_one(loss)
    found = {}
    for group_version, outline in outlines.items():
        # Sorted, so that replicas report the same.
        names = sorted(of_schemas.keys() & outline.components.get("schemas", {}).keys())
        of_itself = of_all + of_paths.get(group_version, Losses())
        found[group_version] = sum(map(of_schemas.__getitem__, names), of_itself)
    return found
