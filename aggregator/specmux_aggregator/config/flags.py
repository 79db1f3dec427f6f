"""Command-line flags for the configuration: one per setting, generated from the settings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import click

from specmux_aggregator.config.backend import flag_backend
from specmux_aggregator.config.setting_fields import BadValue, SettingField, plain, setting_fields
from specmux_aggregator.config.source import CONFIG_VARIABLE, ConfigSource, environment
from specmux_aggregator.exits import InputPath
from specmux_aggregator.folders import LAYOUT
from specmux_aggregator.model.backend import Backend

T = TypeVar("T")

_METAVARS = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH", tuple: "TEXT,..."}


def config_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command that takes ``source: ConfigSource``, built from all these flags."""

    @functools.wraps(function)
    def with_source(
        config: Path | None,
        backends: tuple[Backend, ...],
        directories: tuple[Path, ...],
        **parameters: Any,
    ) -> Any:
        flags = {setting.key: parameters.pop(_parameter(setting)) for setting in setting_fields()}
        source = ConfigSource(
            file=config,
            flags=MappingProxyType({key: value for key, value in flags.items() if value is not None}),
            environment=environment(),
            backends=backends,
            directories=directories,
        )
        return function(source=source, **parameters)

    decorated: Callable[..., Any] = with_source
    for setting in reversed(setting_fields()):
        decorated = _option(setting)(decorated)
    return _CONFIG(backend_flags(decorated))


def backend_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a click command that takes ``backends`` and ``directories``."""
    for option in reversed(_BACKENDS):
        function = option(function)
    return function


_CONFIG = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar=CONFIG_VARIABLE,
    help="Configuration file (YAML); read again when it changes.",
)
_BACKENDS = (
    click.option(
        "--backend",
        "backends",
        metavar="NAME=URL",
        callback=lambda _context, parameter, texts: tuple(
            _read(flag_backend, text, parameter) for text in texts
        ),
        multiple=True,
        help="An apiserver, beside those of a configuration file; repeatable.",
    ),
    click.option(
        "--directory",
        "directories",
        type=InputPath(exists=True, file_okay=False, path_type=Path, words=(LAYOUT,)),
        multiple=True,
        help="A directory of documents and CustomResourceDefinitions, or a snapshot (oci:PATH), served as a "
        "backend named after it; repeatable.",
    ),
)


def _parameter(setting: SettingField) -> str:
    return f"{setting.group}_{setting.name}"


def _option(setting: SettingField) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    shown = "" if setting.default is None else f"  [default: {plain(setting.default)}]"
    text = f"{setting.doc[0].upper()}{setting.doc[1:]}.{shown}"
    others = [] if setting.short is None else [setting.short]
    if setting.type is bool:
        negative = f"--no-{setting.flag.removeprefix('--')}"
        names = [f"{setting.flag}/{negative}", *others, _parameter(setting)]
        return click.option(*names, default=None, help=text)
    names = [setting.flag, *others, _parameter(setting)]
    if setting.flag.endswith("-directory"):
        names.insert(1, setting.flag.removesuffix("ectory"))
    return click.option(
        *names,
        metavar=_metavar(setting),
        callback=lambda _context, parameter, text: (
            None if text is None else _read(setting.read, text, parameter)
        ),
        help=text,
    )


def _metavar(setting: SettingField) -> str:
    if setting.choices:
        return f"[{'|'.join(setting.choices)}]"
    return "BYTES" if setting.is_bytes else _METAVARS[setting.type]


def _read(read: Callable[[str], T], text: str, parameter: click.Parameter) -> T:
    try:
        return read(text)
    except BadValue as bad:
        raise click.BadParameter(str(bad), param=parameter) from bad
