"""Options that every command takes, before its name or after it: ``-v``, ``-q``, and ``-o`` where it prints.

``--release`` is the same for every command whose answer depends on a release of Kubernetes.
A command without an output of its own refuses ``-o`` by name, wherever it stands: ``-o json init`` would
otherwise print text, and exit with 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from specmux_aggregator.command_line.output import group_output
from specmux_aggregator.console import set_verbosity

Command = TypeVar("Command", bound=Callable[..., object])
Listener = Callable[[click.Context, click.Parameter, bool], None]

HABITS: Final = {
    "-f": "--file names documents; manifests are arguments (- is standard input)",
    "--filename": "--file names documents; manifests are arguments (- is standard input)",
    "--file": "--directory names a folder of documents",
    "-k": "pipe kustomize build into it, with - as the argument",
    "-R": "folders are always read whole",
    "--recursive": "folders are always read whole",
    "-n": "the namespace is the manifest's own",
    "--namespace": "the namespace is the manifest's own",
    "--strict": "unknown fields are errors unless --field-validation says otherwise",
    "-strict": "unknown fields are errors unless --field-validation says otherwise",
    "-summary": "--summary, with two dashes",
    "-skip": "--skip, with two dashes",
    "-ignore-missing-schemas": "--ignore-missing-schemas, with two dashes",
    "-ignore-filename-pattern": "--ignore-filename-pattern, with two dashes",
    "-schema-location": "--directory, --file or --server names the documents",
    "--schema-location": "--directory, --file or --server names the documents",
    "-kubernetes-version": "--release, such as 1.36",
    "--kubernetes-version": "--release, such as 1.36",
    "--version": "specmux --version",
}
"""Options of kubectl, kubeconform and kubectl-validate -> their names here."""


class ReleaseName(click.ParamType[str]):
    """A release whose rules are known, as "1.37". Most starts name none and import nothing for it."""

    name = "1.N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from specmux_converters.releases import UnknownRelease, minor_release

        try:
            return f"1.{minor_release(str(value))}"
        except UnknownRelease as error:
            self.fail(str(error), param, ctx)


def processors() -> int:
    """Processors that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def release_option(help_text: str, *, default: str = "the newest") -> Callable[[Command], Command]:
    """The command gets ``release``; None is what the help calls ``default``."""
    return click.option("--release", type=ReleaseName(), help=f"{help_text}  [default: {default}]")


def with_common_options(command: click.Command) -> click.Command:
    """The command, and those of a group, with the options added once."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            with_common_options(inner)
        return command
    taken = {name for parameter in command.params for name in parameter.opts}
    if "--verbose" not in taken:
        shown = {name for name in ("-v", "-q") if name not in taken}
        command.params += verbosity_options(hidden=True, short=shown)
        if "--output" not in taken:
            command.params.append(_no_output_option(shown="-o" not in taken))
    return command


def verbosity_options(*, hidden: bool = False, short: set[str] | None = None) -> list[click.Option]:
    names = {"-v", "-q"} if short is None else short
    return [
        click.Option(
            [*sorted(names & {flag}), f"--{name}"],
            is_flag=True,
            expose_value=False,
            hidden=hidden,
            help=help_text,
            callback=_verbosity(level),
        )
        for flag, name, level, help_text in (
            ("-v", "verbose", 1, "Also show what libraries log."),
            ("-q", "quiet", -1, "Print no warnings."),
        )
    ]


def habit(arguments: list[str], option: str, command: click.Command) -> str | None:
    """The name in ``command`` of an unknown option, of another tool or command. click splits ``-strict`` into
    letters: the whole word is among the arguments."""
    words = [word.partition("=")[0] for word in arguments]
    meant = next((word for word in words if word in HABITS and word.startswith(option)), option)
    known = {name for each in command.params for name in each.opts}
    return None if meant == "--file" and "--directory" not in known else HABITS.get(meant)


def _verbosity(level: int) -> Listener:
    def chosen(context: click.Context, _: click.Parameter, is_set: bool) -> None:
        if is_set:
            set_verbosity(context, level)

    return chosen


def _no_output_option(*, shown: bool) -> click.Option:
    def refuse(context: click.Context, _: click.Parameter, value: str | None) -> None:
        wanted = value or group_output(context)
        if wanted != "text":
            raise click.UsageError(f"{context.info_name} prints nothing as {wanted}: it has no --output")

    names = ["-o", "--output"] if shown else ["--output"]
    return click.Option(names, hidden=True, is_eager=True, expose_value=False, callback=refuse)
