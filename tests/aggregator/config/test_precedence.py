"""File, environment and flags: which wins, and what each refuses."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from aggregator.config.configured import configured, field_of, refused
from specmux_aggregator.config.flags import config_flags
from specmux_aggregator.config.setting_fields import BadValue, setting_fields
from specmux_aggregator.config.settings import ListenSettings, Settings
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.errors import InvalidConfig

NAMES = """
auth: {mode: mtls, client_ca_file: ca.crt, client_names: ["front, proxy", b]}
listen: {tls_cert_file: c, tls_key_file: k}
"""


def test_lists_are_written_as_their_source_writes_them(tmp_path: Path) -> None:
    names = ("front, proxy", "b")
    assert configured(tmp_path, NAMES).auth.client_names == names
    field = field_of("auth.audiences")
    assert field.read("https://a, b") == ("https://a", "b")
    for text in ("", "a,", ",a", "a\n"):
        with pytest.raises(BadValue):
            field.read(text)
    environment = {
        "SPECMUX_AUTH_AUDIENCES": "a,b",
        "SPECMUX_AUTH_MODE": "kubernetes",
        "SPECMUX_KUBERNETES_IN_CLUSTER": "true",
    }
    assert ConfigSource(environment=environment).read().auth.audiences == ("a", "b")


def test_flags_win_over_environment_over_file_over_default(tmp_path: Path) -> None:
    text = "listen: {port: 1, address: file, keepalive_timeout: 1}"
    environment = {"SPECMUX_LISTEN_PORT": "2", "SPECMUX_LISTEN_ADDRESS": "env"}
    settings = configured(tmp_path, text, environment=environment, flags={"listen.port": 3})
    assert settings.listen == ListenSettings(port=3, address="env", keepalive_timeout=1.0)


def test_environment_is_refused_when_it_says_nonsense() -> None:
    variables = {
        "SPECMUX_LISTEN_ACCELERATOR": "perhaps",
        "SPECMUX_LISTEN_PORT": "x",
        "SPECMUX_LISTEN_PROT": "1",
        "SPECMUX_LOG_LEVEL": "loud",
        "SPECMUX_POLLING_INTERVAL": "inf",
    }
    with pytest.raises(InvalidConfig) as error:
        ConfigSource(environment=variables).read()
    assert [line.partition(":")[0] for line in str(error.value).splitlines()] == sorted(variables)


def test_environment_may_hold_what_kubernetes_sets_for_a_service_of_our_name() -> None:
    variables = {
        "SPECMUX_SERVICE_HOST": "10.0.0.1",
        "SPECMUX_SERVICE_PORT": "80",
        "SPECMUX_SERVICE_PORT_HTTP": "80",
        "SPECMUX_PORT": "tcp://10.0.0.1:80",
        "SPECMUX_PORT_80_TCP": "tcp://10.0.0.1:80",
        "SPECMUX_PORT_80_TCP_ADDR": "10.0.0.1",
        "SPECMUX_METRICS_SERVICE_HOST": "10.0.0.1",
        "SPECMUX_CONFIG": "/etc/specmux.yaml",
        "SPECMUX_LOG_LEVEL": "",
    }
    assert ConfigSource(environment=variables).read() == Settings()


def invoked(*arguments: str, env: dict[str, str] | None = None) -> tuple[Result, list[ConfigSource]]:
    sources: list[ConfigSource] = []

    @click.command()
    @click.option("--other")
    @config_flags
    def command(source: ConfigSource, other: str | None) -> None:
        sources.append(source)

    return CliRunner().invoke(command, arguments, env=env), sources


def test_flags_become_a_source(tmp_path: Path) -> None:
    result, (source,) = invoked(
        "--listen-port", "1", "--no-discovery-enabled", "--memory-documents-bytes", "1GiB",
        "--state-dir", str(tmp_path),
        "--backend", "a=http://a/base/", "--backend", "b=https://b", "--other", "x",
    )  # fmt: skip
    assert result.exit_code == 0
    settings = source.read()
    assert (settings.listen, settings.discovery.enabled) == (ListenSettings(port=1), False)
    assert settings.memory.documents_bytes == 2**30
    assert settings.state.directory == tmp_path
    assert [(backend.name, backend.url) for backend in settings.backends] == [
        ("a", "http://a/base"),
        ("b", "https://b"),
    ]


def test_cluster_is_named_by_short_flags_as_by_long_ones() -> None:
    _, (short,) = invoked("--kubeconfig", "k", "--context", "c")
    _, (long,) = invoked("--kubernetes-kubeconfig", "k", "--kubernetes-context", "c")
    expected = {"kubernetes.kubeconfig": Path("k"), "kubernetes.context": "c"}
    assert dict(short.flags) == dict(long.flags) == expected
    _, (inside,) = invoked("--in-cluster")
    assert inside.read().kubernetes.is_meant
    _, (without,) = invoked("--no-kubernetes-in-cluster")
    assert not without.read().kubernetes.is_meant


def test_directory_backends_have_names_of_their_own(tmp_path: Path) -> None:
    directories = [tmp_path / "one" / "v3", tmp_path / "two" / "v3", tmp_path / "a b!"]
    for directory in directories:
        directory.mkdir(parents=True)
    arguments = [part for directory in directories for part in ("--directory", str(directory))]
    _, (source,) = invoked("--backend", "v3=http://a", *arguments)
    backends = source.read().backends
    assert [backend.name for backend in backends] == ["v3", "v3-2", "v3-3", "a-b"]
    assert [backend.directory for backend in backends[1:]] == directories


def test_file_is_named_by_flag_or_variable(tmp_path: Path) -> None:
    _, (by_flag,) = invoked("--config", "a.yaml", env={"SPECMUX_CONFIG": "b.yaml"})
    _, (by_variable,) = invoked(env={"SPECMUX_CONFIG": "b.yaml"})
    assert (by_flag.file, by_variable.file) == (Path("a.yaml"), Path("b.yaml"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen-port", "x"],
        ["--listen-port", "70000"],
        ["--log-level", "loud"],
        ["--backend", "a"],
        ["--backend", "a=b"],
        ["--backend", "a=http://u:p@b"],
        ["--listen-prot", "1"],
    ],
)
def test_usage_error_when_a_flag_says_nonsense(arguments: list[str]) -> None:
    result, sources = invoked(*arguments)
    assert result.exit_code == 2
    assert sources == []
    assert "Traceback" not in result.output
    assert "u:p" not in result.output


def test_two_backends_of_one_name_are_refused_across_file_and_flags(tmp_path: Path) -> None:
    _, (source,) = invoked("--backend", "a=http://a")
    (line,) = refused(tmp_path, "backends: [{name: a, url: 'http://b'}]", backends=source.backends)
    assert line == "--backend a: is the name of two backends"


def test_every_setting_has_a_flag_with_its_meaning() -> None:
    result, _ = invoked("--help")
    words = " ".join(result.output.split())
    for field in setting_fields():
        assert field.flag in words
