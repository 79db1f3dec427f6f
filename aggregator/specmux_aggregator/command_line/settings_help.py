"""The help of ``serve``: the flags that most need, and all of them by group with ``--help-all``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import click

COMMON: Final = (
    "--config", "--backend", "--directory", "--in-cluster", "--kubeconfig", "--context",
    "--listen-address", "--listen-port", "--listen-tls-cert-file", "--listen-tls-key-file",
    "--auth-mode", "--log-level",
)  # fmt: skip

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Sources": ("config", "backends", "directories", "kubernetes"),
    "Listen": ("listen",),
    "Auth": ("auth",),
    "Backends": ("polling", "proxy", "discovery"),
    "Limits": ("limits", "memory", "state"),
    "Logging": ("log",),
}
"""Title -> the first words of the parameters below it."""


class SettingsCommand(click.Command):
    """A command with a flag for every setting."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get("specmux.help_all"):
            self._write_all(ctx, formatter)
            return
        common = [parameter for parameter in self.params if COMMON_SET & set(parameter.opts)]
        with formatter.section("Common options"):
            formatter.write_dl(_records(ctx, common))
        hidden = len(self.params) - len(common)
        formatter.write_paragraph()
        groups = ", ".join(GROUPS)
        formatter.write_text(f"-h and --help show this; --help-all adds {hidden} more, in groups: {groups}.")

    def _write_all(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, words in GROUPS.items():
            named = [each for each in self.params if each.name and each.name.partition("_")[0] in words]
            with formatter.section(title):
                formatter.write_dl(_records(ctx, named))
        grouped = {word for words in GROUPS.values() for word in words}
        others = [each for each in self.get_params(ctx) if (each.name or "").partition("_")[0] not in grouped]
        with formatter.section("Other"):
            formatter.write_dl(_records(ctx, others))


COMMON_SET: Final = frozenset(COMMON)


def help_all(context: click.Context, _: click.Parameter, value: bool) -> None:
    """The callback of ``--help-all``."""
    if value:
        context.meta["specmux.help_all"] = True
        click.echo(context.get_help())
        context.exit()


def _records(ctx: click.Context, parameters: Iterable[click.Parameter]) -> list[tuple[str, str]]:
    return [record for each in parameters if (record := each.get_help_record(ctx)) is not None]
