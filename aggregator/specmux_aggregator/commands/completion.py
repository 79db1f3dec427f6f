"""``specmux completion``: the script that a shell completes with."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from specmux_aggregator.command_line.lazy_commands import examples


@click.command(
    epilog=examples(
        ("bash: this shell, or ~/.bashrc for all", "source <(specmux completion bash)"),
        ("zsh", "source <(specmux completion zsh)"),
        ("fish", "specmux completion fish > ~/.config/fish/completions/specmux.fish"),
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, and the group-versions that the disk cache has.
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(made(context.find_root().command, {}, "specmux", "_SPECMUX_COMPLETE").source())
