"""``--release``, the same for every command whose answer depends on a release of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from specmux_converters.releases import RELEASES

Command = TypeVar("Command", bound=Callable[..., object])


def release_option(help_text: str) -> Callable[[Command], Command]:
    """The command gets ``release``: one whose rules are known, by default the newest."""
    return click.option(
        "--release", type=click.Choice(RELEASES), default=RELEASES[-1], show_default=True, help=help_text
    )
