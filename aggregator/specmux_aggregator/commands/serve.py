"""``specmux serve``: the service, from its settings to its end."""

from __future__ import annotations

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.settings_help import SettingsCommand, help_all
from specmux_aggregator.config.flags import config_flags
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.exits import report_errors


@click.command(
    cls=SettingsCommand,
    epilog=examples(
        ("the cluster of the current context of a kubeconfig", "specmux serve --kubeconfig ~/.kube/config"),
        ("two apiservers", "specmux serve --backend a=https://10.0.0.1:6443 --backend b=https://10.0.0.2"),
        ("files: OpenAPI v3, Swagger 2.0, CustomResourceDefinitions", "specmux serve --directory documents/"),
        ("everything from a file", "specmux serve --config specmux.yaml"),
    ),
)
@click.option(
    "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=help_all, help="Show all flags."
)
@config_flags
def serve(source: ConfigSource) -> None:
    """Serve the discovery and the documents of all backends.

    It runs until SIGTERM or Ctrl-C.
    Every setting is a flag, an environment variable and a key of the file, in this order of precedence.

    Exit codes: 0 stopped, 2 usage, 3 invalid configuration, 4 cannot listen.
    """
    # Imported when it serves: help and completion need neither an event loop nor the service.
    from specmux_aggregator.config.watch import watch_config
    from specmux_aggregator.process import configure_logging, raise_file_limit, run, run_to_the_end

    with report_errors():
        settings = source.read()
        if not settings.backends and not settings.kubernetes.is_meant:
            where = f"{source.file} names no backends and no cluster; " if source.file is not None else ""
            raise click.UsageError(
                f"nothing to serve: {where}"
                "give --config FILE, --backend NAME=URL, --directory DIR, --kubeconfig FILE or --in-cluster"
            )
        configure_logging(settings.log)
        keeper = None
        if settings.listen.processes > 1:
            from specmux_aggregator.server.acceptors.keeper import fork_keeper

            raise_file_limit()
            keeper = fork_keeper(settings)
        run_to_the_end(
            run(
                settings,
                changes=lambda reread: watch_config(source, settings, reread=reread),
                is_whole_process=True,
                keeper=keeper,
            )
        )
