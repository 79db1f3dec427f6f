"""The options that say where documents come from, the same for every command."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import click

from specmux_aggregator.command_line.common_options import ReleaseName
from specmux_aggregator.console import warn
from specmux_aggregator.errors import NoSource
from specmux_aggregator.exits import InputPath
from specmux_aggregator.folders import LAYOUT
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # type checkers alone have it
    from _typeshed import DataclassInstance

Command = TypeVar("Command", bound=Callable[..., Any])
Value = TypeVar("Value", bound="DataclassInstance")

REQUEST_TIMEOUT: Final = 60.0
"""Seconds for one answer of a server."""
STDIN: Final = Path("-")
CONTEXT: Final = "context:"
"""Before the name of a kubeconfig's context, where one word names a source."""

KUBERNETES: Final = "kubernetes:"
"""Before a release of Kubernetes whose own kinds are meant, where one word names a source."""

_FILE: Final = InputPath(path_type=Path, exists=True, dir_okay=False)
GIT: Final = "git:"
"""Before a revision and a path in it, where one word names a source."""


def is_url(word: str) -> bool:
    return word.lower().startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The source that options name. Without any, it is the kubeconfig's current context, as with kubectl;
    with no kubeconfig, the newest release of Kubernetes."""

    server: str | None = None
    """http(s)://host[:port][/path]"""
    kubeconfig: Path | None = None
    """Instead of $KUBECONFIG and ~/.kube/config."""
    context: str | None = None
    """Instead of the current one."""
    directories: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    """``-``: standard input."""
    kubernetes: str | None = None
    """The release ("1.37") of Kubernetes whose own kinds are meant."""
    offline: bool = False
    cache_directory: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    """The name in the certificate, where it is not the URL's."""
    request_timeout: float = REQUEST_TIMEOUT

    @property
    def directory_of_cache(self) -> Path:
        from specmux_cache.reading.options import default_directory

        named = self.cache_directory or os.environ.get("SPECMUX_CACHE_DIRECTORY")
        return Path(named) if named else default_directory(os.environ)

    @property
    def names_one(self) -> bool:
        """Whether a source is named at all; else the current context is meant."""
        return bool(self.is_local or self.server or self.kubeconfig or self.context or self.kubernetes)

    @property
    def is_local(self) -> bool:
        """Whether no server is meant."""
        return bool(self.directories or self.files)

    def or_release(self, release: str | None) -> Self:
        """Kubernetes' own kinds of this release, unless a source is named or there is none."""
        return self if release is None or self.names_one else replace(self, kubernetes=release)

    def at(self, word: str) -> Self:
        """The source that one word names, with the credentials and the cache of these options."""
        bare = replace(self, server=None, context=None, kubernetes=None, directories=(), files=())
        if is_url(word):
            return replace(bare, server=word)
        if word.startswith(CONTEXT):
            return replace(bare, context=word.removeprefix(CONTEXT))
        if word.startswith(KUBERNETES):
            return replace(bare, kubernetes=release_of(word))
        path = Path(word)
        if path != STDIN and path.is_dir():
            return replace(bare, directories=(path,))
        return replace(bare, files=(path,))


def source_word(word: str) -> str:
    """The word; of a bare release, ``1.37``, the one that names it, unless a file is called so."""
    if re.fullmatch(r"v?1\.[0-9]+", word) and not Path(word).exists():
        return f"{KUBERNETES}{word}"
    return word


def release_of(word: str) -> str:
    """The release that ``kubernetes:1.37`` names. Raises NoSource."""
    from specmux_converters.errors import cut
    from specmux_converters.releases import UnknownRelease, minor_release

    try:
        return f"1.{minor_release(word.removeprefix(KUBERNETES))}"
    except UnknownRelease as error:
        raise NoSource(f"{cut(word)}: {error}") from error


def bundle_options(
    name: str,
    kind: type[Value],
    *options: Callable[[Any], Any],
    check: Callable[[Value, Mapping[str, Any]], Value] = lambda value, _: value,
) -> Callable[[Command], Command]:
    """Adds ``options``; the command gets the options that are fields of the dataclass ``kind`` as one value
    of this name. ``check``: of the value and of what else the command gets; raises click.UsageError."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_value(*arguments: Any, **values: Any) -> Any:
            mine = {each: values.pop(each) for each in kind.__dataclass_fields__ if each in values}
            return command(*arguments, **{name: check(kind(**mine), values)}, **values)

        decorated: Any = with_value
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


_ASKED: Final = (
    click.option(
        "--server", metavar="URL", envvar="SPECMUX_SERVER", show_envvar=True,
        help="Read from this server: http(s)://host[:port][/path].",
    ),
    click.option(
        "--kubeconfig", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
        help="The kubeconfig.  [default: $KUBECONFIG, else ~/.kube/config]",
    ),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig.  [default: the current one]"),
)  # fmt: skip

_SERVER: Final = (
    *_ASKED,
    click.option("--offline", is_flag=True, help="Contact no server: read the disk cache."),
)

_FILES: Final = (
    click.option(
        "--directory", "directories", metavar="DIR", multiple=True,
        type=InputPath(path_type=Path, exists=True, file_okay=False, words=(LAYOUT,)),
        help="Read the documents below this folder instead of a server: OpenAPI v3, Swagger 2.0, CRDs;"
        " or a snapshot, oci:PATH. Repeatable.",
    ),
    click.option(
        "--file", "files", metavar="FILE", multiple=True,
        type=InputPath(
            path_type=Path, exists=True, dir_okay=False, allow_dash=True, words=(GIT, LAYOUT)
        ),
        help="Read this file instead of a server: a document, a bundle, git:REV:PATH, oci:PATH, or - for"
        " standard input. Repeatable.",
    ),
)  # fmt: skip

_CREDENTIALS: Final = (
    click.option("--token-file", metavar="FILE", type=_FILE, help="Bearer token for --server."),
    click.option(
        "--ca-file", metavar="FILE", type=_FILE, help="Verify the server with these CA certificates alone."
    ),
    click.option("--client-certificate", metavar="FILE", type=_FILE, help="Client certificate for --server."),
    click.option("--client-key", metavar="FILE", type=_FILE, help="Private key of the client certificate."),
    click.option("--insecure-skip-tls-verify", is_flag=True, help="Do not verify the server's certificate."),
    click.option(
        "--tls-server-name", metavar="NAME", help="Name in the server's certificate.  [default: the URL's]"
    ),
    click.option(
        "--request-timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True),
        default=REQUEST_TIMEOUT, show_default=True, help="Give up a request after this many seconds.",
    ),
)  # fmt: skip

_CACHE: Final = click.option(
    "--cache-directory", metavar="DIR", envvar="SPECMUX_CACHE_DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the disk cache.  [default: $XDG_CACHE_HOME/specmux]",
)  # fmt: skip


def _source(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Adds these; the command gets them as ``source: SourceOptions``. A usage error for two sources."""
    return bundle_options("source", SourceOptions, *options, check=lambda source, _: _check_source(source))


source_options: Final = _source(*_SERVER, *_FILES, *_CREDENTIALS, _CACHE)
"""Options of commands that read documents."""
server_options: Final = _source(*_SERVER, *_CREDENTIALS)
"""Without files, for commands that ask servers only and have a cache of their own."""
side_options: Final = _source(*_SERVER, *_CREDENTIALS, _CACHE)
"""Without files, for commands whose arguments name the sources."""
service_options: Final = _source(*_ASKED, *_CREDENTIALS)
"""Without the disk cache, for what asks a running service."""
page_options: Final = _source(*_ASKED, _FILES[0], *_CREDENTIALS)
"""Without single files and without the disk cache, for what serves them."""
mirror_options: Final = _source(*_CREDENTIALS)
"""The credentials alone, for a server that another option names."""


own_kinds_option: Final = click.option(
    "--release", "kubernetes", type=ReleaseName(),
    help="Read Kubernetes' own kinds of this release, built into specmux, instead of a server.",
)  # fmt: skip
"""``--release`` as a source, for commands whose answer depends on a release in nothing else."""


def group_versions_option(what: str) -> Callable[[Command], Command]:
    """The option of commands that can look at some group-versions alone. They get ``group_versions`` as
    discovery has them: ``apps/v1`` is ``apis/apps/v1``, and ``v1`` is ``api/v1``."""
    return click.option(
        "-g", "--group-version", "group_versions", metavar="NAME", multiple=True,
        callback=_discovery_keys,
        help=f'{what} alone, such as "apps/v1". Repeatable.',
    )  # fmt: skip


def _discovery_keys(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    from specmux_converters.group_versions import named_group_version  # most commands get none

    return tuple(map(named_group_version, names))


def say_once(say: Callable[[str], None], text: str) -> None:
    """A command may read one source for several of its arguments, and says this for the first."""
    context = click.get_current_context(silent=True)
    said = set() if context is None else context.meta.setdefault(__name__, set())
    if text not in said:
        said.add(text)
        say(text)


def is_given(name: str) -> bool:
    """Whether the option stands on the command line; a variable may have set it, too."""
    found = click.get_current_context().get_parameter_source(name)
    return found is click.core.ParameterSource.COMMANDLINE


def _check_source(source: SourceOptions) -> SourceOptions:
    """Raises click.UsageError for options that contradict each other."""
    cluster = "--kubeconfig or --context" if source.kubeconfig or source.context else None
    local = "--directory or --file" if source.is_local else None
    server = "--server" if source.server else None
    release = "--release" if source.kubernetes else None
    if (cluster or local or release) and not is_given("server"):
        source, server = replace(source, server=None), None  # the variable is for where nothing else is said
    given = [name for name in (server, cluster, local, release) if name]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} name different sources; give one of them")
    if local and source.offline:
        raise click.UsageError("--offline is for servers; --directory and --file ask none anyway")
    if source.client_key and not source.client_certificate:
        raise click.UsageError("--client-key needs --client-certificate")
    _warn_of_misspelt_variables()
    return source


def _warn_of_misspelt_variables() -> None:
    mine = {option.envvar for option in click.get_current_context().command.params}
    others = [name for name in os.environ if name.startswith("SPECMUX_") and name not in mine]
    if others:
        from specmux_aggregator.config.source import unknown_variables  # which most environments do without

        for name, meant in unknown_variables(others):
            if meant:
                warn(f"{name} is set and not read; did you mean {meant}?")
