"""A caller as represented in Kubernetes. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

import orjson

ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """Names come from the cluster's authenticators, unchanged."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """By key, sorted."""
    key: bytes = field(init=False, repr=False, compare=False)
    """Short, and equal for equal users, however long their names."""

    def __post_init__(self) -> None:
        facts = orjson.dumps([self.name, self.uid, self.groups, self.extra])
        object.__setattr__(self, "key", hashlib.sha256(facts).digest())


def authenticated_user(
    name: str, uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]
) -> User:
    """An authenticated user: a member of ``system:authenticated``, as apiservers add it."""
    if name != ANONYMOUS and AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(name, uid, groups, tuple(sorted(extra.items())))
