"""Good bytes with a few changes: what parsers get from who means no good, or cannot count."""

from __future__ import annotations

import random


def bent(whole: bytes, choice: random.Random) -> bytes:
    """Up to six changes: a byte replaced, a run left out, a run said twice."""
    changed = bytearray(whole)
    for _ in range(choice.randint(1, 6)):
        place = choice.randrange(len(changed))
        match choice.randrange(3):
            case 0:
                changed[place] = choice.randrange(256)
            case 1:
                del changed[place : place + choice.randint(1, 20)]
            case _:
                changed[place:place] = changed[place : place + choice.randint(1, 20)]
    return bytes(changed)
