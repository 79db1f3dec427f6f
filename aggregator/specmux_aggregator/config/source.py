"""The sources of the configuration and their precedence: flags, then the environment, then the file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from specmux_aggregator.config.backend import directory_backends
from specmux_aggregator.config.setting_fields import VARIABLE_PREFIX, BadValue, setting_fields
from specmux_aggregator.config.settings import AuthSettings, KubernetesSettings, SchemaSettings, Settings
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.model.backend import Backend
from specmux_cache.access.urls import backend_url
from specmux_cache.whole_files import UnreadableFile, read_small
from specmux_converters.lazy.patterns import pattern

CONFIG_VARIABLE: Final = f"{VARIABLE_PREFIX}CONFIG"
"""Names the file if no flag does."""

CLIENT_VARIABLES: Final = frozenset({f"{VARIABLE_PREFIX}SERVER", f"{VARIABLE_PREFIX}CACHE_DIRECTORY"})
"""Variables of the client commands; not settings of the service, and not reported as unknown."""

_MODES: Final = {
    "token_file": "token-file",
    "audiences": "kubernetes",
    "client_ca_file": "mtls",
    "client_names": "mtls",
    "requestheader_ca_file": "kubernetes",
    "requestheader_names": "kubernetes",
}
"""Keys of ``auth`` by the mode that uses them."""

# Kubernetes sets these in every pod of a namespace with a Service named specmux or specmux-*.
_SERVICE_VARIABLE: Final = pattern(
    r"SPECMUX(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)\w*)?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """The sources as they were when the process started; read again at every reload."""

    file: Path | None = None
    flags: Mapping[str, object] = field(default_factory=dict)
    """Values by key ("listen.port"), already validated."""
    environment: Mapping[str, str] = field(default_factory=dict)
    backends: tuple[Backend, ...] = ()
    """Backends from flags, in addition to those of the file."""
    directories: tuple[Path, ...] = ()
    """Directories from flags; each becomes a backend."""

    def read(self) -> Settings:
        """The current configuration. Raises InvalidConfig; blocks on the file."""
        return self.parse(None if self.file is None else read_file(self.file))

    def parse(self, text: bytes | None, *, before: Settings | None = None) -> Settings:
        """The configuration with ``text`` as the content of the file. Raises InvalidConfig.

        Also raises it if the file of ``before`` named backends and ``text`` has no list of them: the file may
        have been emptied, or be half written.
        """
        # Help and completion need no YAML.
        from specmux_aggregator.config.file import ConfigFile, parse_config_file

        parsed = ConfigFile({}, ())
        if self.file is not None and text is not None:
            parsed = parse_config_file(_decode(text, self.file), self.file)
        values = {**parsed.values, **_from_environment(self.environment), **self.flags}
        settings = replace(_settings(values), backends=self._backends(parsed.backends))
        _check(settings)
        is_silent = self.file is not None and not parsed.lists_backends
        if before is not None and is_silent and len(before.backends) > len(settings.backends):
            raise InvalidConfig(
                "lists no backends any more; if none are meant, say backends: []", where=str(self.file)
            )
        return settings

    def _backends(self, configured: tuple[Backend, ...]) -> tuple[Backend, ...]:
        named = (*configured, *self.backends)
        names = [backend.name for backend in named]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidConfig("is the name of two backends", where=f"--backend {twice[0]}")
        return (*named, *directory_backends(self.directories, taken=names))


def read_file(path: Path) -> bytes:
    """The content of the file. Raises InvalidConfig."""
    try:
        return read_small(path)
    except UnreadableFile as error:
        raise InvalidConfig(str(error), where=str(path)) from error


def environment() -> Mapping[str, str]:
    """The variables of this package in the process environment."""
    ours = {name: value for name, value in os.environ.items() if name.startswith(VARIABLE_PREFIX)}
    return MappingProxyType(ours)


def unknown_variables(variables: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each name that nobody reads, with the one that it may be meant for, or ""."""
    known = {setting.variable for setting in setting_fields()} | CLIENT_VARIABLES | {CONFIG_VARIABLE}
    for name in sorted(set(variables) - known):
        if not _SERVICE_VARIABLE.fullmatch(name):
            import difflib

            suffixes = [each.removeprefix(VARIABLE_PREFIX) for each in sorted(known)]
            close = difflib.get_close_matches(name.removeprefix(VARIABLE_PREFIX), suffixes, n=1, cutoff=0.8)
            yield name, f"{VARIABLE_PREFIX}{close[0]}" if close else ""


def _decode(text: bytes, path: Path) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise InvalidConfig("not UTF-8", where=f"{path}:{line}") from error


def _from_environment(variables: Mapping[str, str]) -> dict[str, object]:
    known = {setting.variable: setting for setting in setting_fields()}
    values: dict[str, object] = {}
    faults = [
        f"{name}: no such setting" + (f"; did you mean {meant}?" if meant else "")
        for name, meant in unknown_variables(variables)
    ]
    for name, text in sorted(variables.items()):
        setting = known.get(name)
        if setting is None:
            continue
        if not text:
            continue
        try:
            values[setting.key] = setting.read(text)
        except BadValue as bad:
            faults.append(f"{name}: {bad}")
    if faults:
        raise InvalidConfig("\n".join(sorted(faults)))
    return values


def _settings(values: Mapping[str, object]) -> Settings:
    groups: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        group, _, name = key.partition(".")
        groups.setdefault(group, {})[name] = value
    defaults = Settings()
    return replace(
        defaults, **{name: replace(getattr(defaults, name), **group) for name, group in groups.items()}
    )


def _check(settings: Settings) -> None:
    """Check relations between values."""
    if (settings.listen.tls_cert_file is None) != (settings.listen.tls_key_file is None):
        raise InvalidConfig("wants both tls_cert_file and tls_key_file, or neither", where="listen")
    is_tls = settings.listen.tls_cert_file is not None
    if settings.listen.processes > 1 and (is_tls or sys.platform != "linux"):
        reason = "with TLS, which a proxy in front can end" if is_tls else "on systems other than Linux"
        raise InvalidConfig(f"has to be 1 {reason}", where="listen.processes")
    if settings.polling.backoff_min > settings.polling.backoff_max:
        raise InvalidConfig("is more than backoff_max", where="polling.backoff_min")
    _check_kubernetes(settings.kubernetes, is_asked_for_reviews=settings.auth.mode == "kubernetes")
    _check_schemas(settings.schemas)
    _check_auth(
        settings.auth,
        is_tls=is_tls,
        has_cluster=settings.kubernetes.is_meant,
    )


def _check_kubernetes(kubernetes: KubernetesSettings, *, is_asked_for_reviews: bool) -> None:
    if kubernetes.in_cluster and (kubernetes.kubeconfig is not None or kubernetes.context is not None):
        raise InvalidConfig(
            "stands beside a kubeconfig or context; it can be only one of them", where="kubernetes.in_cluster"
        )
    if kubernetes.service_key_file is not None and kubernetes.service_cert_file is None:
        raise InvalidConfig("wants kubernetes.service_cert_file", where="kubernetes.service_key_file")
    filled = kubernetes.service_url
    for name, value in (("{name}", "name"), ("{namespace}", "namespace"), ("{port}", "443")):
        filled = filled.replace(name, value)
    try:
        backend_url(filled)
    except BadValue as bad:
        raise InvalidConfig(
            f"with {{name}}, {{namespace}} and {{port}} filled in: {bad}", where="kubernetes.service_url"
        ) from bad
    if kubernetes.is_meant and not kubernetes.is_source and not is_asked_for_reviews:
        raise InvalidConfig(
            "has api_services, crds and apiserver switched off: nothing is left", where="kubernetes"
        )


def _check_schemas(schemas: SchemaSettings) -> None:
    if (schemas.access == "path-token") != (schemas.token_file is not None):
        raise InvalidConfig("path-token and schemas.token_file want each other", where="schemas.access")
    if schemas.release is not None and not re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9]+", schemas.release):
        raise InvalidConfig("wants a release like v1.35.0", where="schemas.release")


def _check_auth(auth: AuthSettings, *, is_tls: bool, has_cluster: bool) -> None:
    """A key without its mode is refused: its author believes that it protects something."""
    for name, mode in _MODES.items():
        if getattr(auth, name) is not None and auth.mode != mode:
            raise InvalidConfig(f"has no effect: auth.mode is {auth.mode}, not {mode}", where=f"auth.{name}")
    if auth.mode == "kubernetes" and not has_cluster:
        raise InvalidConfig(
            "is kubernetes, which needs kubernetes.in_cluster, kubeconfig or context", where="auth.mode"
        )
    if auth.mode == "token-file" and auth.token_file is None:
        raise InvalidConfig("is token-file, which needs auth.token_file", where="auth.mode")
    if auth.mode == "mtls" and auth.client_ca_file is None:
        raise InvalidConfig("is mtls, which needs auth.client_ca_file", where="auth.mode")
    if auth.requestheader_names is not None and auth.requestheader_ca_file is None:
        raise InvalidConfig("wants auth.requestheader_ca_file beside it", where="auth.requestheader_names")
    if auth.ca_file is not None and not is_tls:
        raise InvalidConfig(
            "client certificates want TLS: listen.tls_cert_file and tls_key_file", where="auth.mode"
        )
