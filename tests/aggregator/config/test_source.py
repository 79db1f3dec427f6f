"""The configuration: what a file, the environment and flags may say, and how mistakes are told."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aggregator.config.configured import configured, field_of, refused
from specmux_aggregator.config.backend import _BACKEND, _GROUPS, backend_name
from specmux_aggregator.config.file import parse_config_file
from specmux_aggregator.config.setting_fields import BadValue, SettingField, setting_fields
from specmux_aggregator.config.settings import ListenSettings, Settings
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_cache.access.urls import backend_url
from specmux_cache.whole_files import FILE_MAX

REVIEWED = "kubernetes: {in_cluster: true}\nauth: {mode: kubernetes, %s}"


ONE_BACKEND = "backends: [{name: a, url: 'https://a', %s}]"


def test_defaults_hold_when_nothing_is_said(tmp_path: Path) -> None:
    assert ConfigSource().read() == Settings()
    for text in ("", "# nothing\n", "listen:\nbackends:\n", "{}", "---\n...\n"):
        assert configured(tmp_path, text) == Settings()


def test_file_sets_everything_it_names(tmp_path: Path) -> None:
    settings = configured(
        tmp_path,
        """
listen: {address: "::1", port: 0, tls_cert_file: tls.crt, tls_key_file: /etc/tls.key}
discovery: {enabled: off}
polling: {interval: 2, jitter: 0.5}
memory: {documents_bytes: 64MiB}
log: {level: debug}
backends:
- name: core
  kind: v3
  url: HTTPS://kubernetes.default.svc:443/base/
  priority: -3
  group_versions: [apis/apps/v1, version]
  tls: {ca_file: ca.crt, cert_file: c.crt, key_file: c.key, server_name: api}
  credentials: {token_file: token, remote_user: "system:aggregator"}
- {name: docs, directory: docs}
""",
    )
    assert settings.listen == ListenSettings(
        address="::1",
        port=0,
        tls_cert_file=tmp_path / "tls.crt",
        tls_key_file=Path("/etc/tls.key"),
    )
    assert not settings.discovery.enabled
    assert (settings.polling.interval, settings.polling.jitter) == (2.0, 0.5)
    assert settings.memory.documents_bytes == 64 * 1024 * 1024
    core, docs = settings.backends
    assert core == Backend(
        name=backend_name("core"),
        kind=BackendKind.V3,
        url="https://kubernetes.default.svc:443/base",
        priority=-3,
        group_versions=frozenset({"apis/apps/v1", "version"}),  # type: ignore[arg-type]
        tls=ServerTLS(
            ca_file=tmp_path / "ca.crt",
            cert_file=tmp_path / "c.crt",
            key_file=tmp_path / "c.key",
            server_name="api",
        ),
        credentials=Credentials(token_file=tmp_path / "token", remote_user="system:aggregator"),
    )
    assert docs == Backend(name=backend_name("docs"), kind=BackendKind.DIRECTORY, directory=tmp_path / "docs")


@pytest.mark.parametrize("word", ["off", "warn", "'off'"])
def test_a_choice_that_yaml_takes_for_something_else_needs_no_quotes(word: str, tmp_path: Path) -> None:
    found = configured(tmp_path, f"documents: {{check: {word}}}")
    assert found.documents.check == word.strip("'")


def test_parts_of_a_backend_may_be_shared_by_anchors(tmp_path: Path) -> None:
    settings = configured(
        tmp_path,
        """
backends:
- {name: a, url: "https://a", tls: &shared {ca_file: ca.crt}}
- {name: b, url: "https://b", tls: *shared}
""",
    )
    assert {backend.tls for backend in settings.backends} == {ServerTLS(ca_file=tmp_path / "ca.crt")}


def test_backend_may_be_behind_a_proxy(tmp_path: Path) -> None:
    text = 'backends: [{name: a, url: "https://a", proxy_url: "http://proxy:3128/"}]'
    (backend,) = configured(tmp_path, text).backends
    assert backend.proxy_url == "http://proxy:3128"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("url: https://a, proxy_url: socks5://p:1", "proxy_url: is a SOCKS proxy"),
        ("url: https://a, proxy_url: http://jane:s3cret@p:1", "proxy_url: holds a user name or password"),
        ("url: https://a, proxy_url: http://p/path", "proxy_url: holds more than scheme, host and port"),
        ("directory: d, proxy_url: http://p:1", "is a directory, which takes no proxy_url"),
    ],
)
def test_proxy_is_refused_with_its_key(text: str, said: str, tmp_path: Path) -> None:
    (message,) = refused(tmp_path, f"backends: [{{name: a, {text}}}]")
    assert said in message
    assert "s3cret" not in message


def test_all_mistakes_are_told_at_once_with_line_and_key(tmp_path: Path) -> None:
    text = """listen:
  port: 80a
  prot: 1
polling: {jitter: 2}
backends:
- name: a
  url: https://a
  priorty: 1
- url: https://b
"""
    assert refused(tmp_path, text) == [
        'specmux.yaml:2: listen.port: "80a" is not a whole number',
        "specmux.yaml:3: listen.prot: unknown key; did you mean port?",
        "specmux.yaml:4: polling.jitter: 2 is more than 1",
        "specmux.yaml:8: backends[0].priorty: unknown key; did you mean priority?",
        "specmux.yaml:9: backends[1]: has no name",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("listen: 1", "1: listen: wants a mapping"),
        ("- listen", "1: wants a mapping"),
        ("text", "1: wants a mapping"),
        ("backends: {a: b}", "1: backends: wants a list"),
        ("backends: [a]", "1: backends[0]: wants a mapping"),
        ("listen: {port: 1}\nlisten: {port: 2}", "2: listen: given twice"),
        ("listen:\n  port: 1\n  port: 2", "3: listen.port: given twice"),
        ("listen: {port: [1]}", "1: listen.port: wants a single value"),
        ("listen: {port: true}", "1: listen.port: wants a number"),
        ("listen: {port: 1.0}", '1: listen.port: "1.0" is not a whole number'),
        ("listen: {port: 0x50}", '1: listen.port: "0x50" is not a whole number'),
        ("listen: {port: 1:30}", '1: listen.port: "1:30" is not a whole number'),
        ("listen: {port: 65536}", "1: listen.port: 65536 is more than 65535"),
        ("listen: {port: -1}", "1: listen.port: -1 is less than 0"),
        ("listen: {address: 1}", "1: listen.address: wants a text, and YAML reads this as int"),
        ("listen: {address: ''}", "1: listen.address: empty"),
        ("discovery: {enabled: 1}", "1: discovery.enabled: wants true or false"),
        (
            "listen: {tls_cert_file: a, tls_key_file: b, processes: 2}",
            "listen.processes: has to be 1 with TLS, which a proxy in front can end",
        ),
        ("listen: {tls_cert_file: a}", "listen: wants both tls_cert_file and tls_key_file"),
        ("polling: {interval: .nan}", '1: polling.interval: ".nan" is not a number'),
        ("polling: {interval: soon}", '1: polling.interval: "soon" is not a number'),
        ("polling: {interval: 0}", "1: polling.interval: 0 is less than 0.01"),
        ("polling: {backoff_min: 5, backoff_max: 1}", "polling.backoff_min: is more than backoff_max"),
        ("state: {max_bytes: 1000}", "1: state.max_bytes: 1000 is less than 1048576"),
        ("memory: {documents_bytes: 1 x}", '1: memory.documents_bytes: "1 x" is not a number of bytes'),
        (
            "kubernetes: {in_cluster: true, context: c}",
            "kubernetes.in_cluster: stands beside a kubeconfig or context",
        ),
        ("kubernetes: {service_key_file: k}", "kubernetes.service_key_file: wants kubernetes.service_cert"),
        ("kubernetes: {service_url: 'ftp://{name}'}", "kubernetes.service_url: with {name}"),
        ("kubernetes: {service_url: 'https://{pod}'}", "kubernetes.service_url: with {name}"),
        (
            "kubernetes: {in_cluster: true, api_services: false, crds: false, apiserver: false}",
            "kubernetes: has api_services, crds and apiserver switched off",
        ),
        ("auth: {mode: kubernetes}", "auth.mode: is kubernetes, which needs kubernetes.in_cluster"),
        ("auth: {mode: token-file}", "auth.mode: is token-file, which needs auth.token_file"),
        ("auth: {mode: mtls}", "auth.mode: is mtls, which needs auth.client_ca_file"),
        ("auth: {mode: mtls, client_ca_file: c}", "auth.mode: client certificates want TLS"),
        ("auth: {token_file: t}", "auth.token_file: has no effect: auth.mode is none, not token-file"),
        ("auth: {client_ca_file: c, mode: kubernetes}", "auth.client_ca_file: has no effect: auth.mode is k"),
        (REVIEWED % "requestheader_names: [a]", "auth.requestheader_names: wants auth.requestheader_ca_file"),
        (REVIEWED % "requestheader_ca_file: c", "auth.mode: client certificates want TLS"),
        ("auth: {mode: jwt}", '1: auth.mode: "jwt" is not one of none, kubernetes, token-file, mtls'),
        ("auth: {client_names: a}", "1: auth.client_names: wants a list"),
        ("auth: {client_names: []}", "1: auth.client_names: lists nothing"),
        ("auth: {client_names: [1]}", "1: auth.client_names[0]: wants a text, and YAML reads this as int"),
        ("auth: {token_file: eyJhbGciOi.eyJzdWIi.sig}", "1: auth.token_file: holds a token where the path"),
        ("auth: {token: abc}", "1: auth.token: unknown key; a secret is never written here"),
        ("documents: {check: on}", "1: documents.check: wants a text, and YAML reads this as bool"),
        ("log: {level: loud}", '1: log.level: "loud" is not one of debug, info, warning, error'),
        ("log: {<<: {level: info}}", "1: log.<<: unknown key"),
        ("log: {? [a] : b}", "1: log.: unknown key"),
        ("a: &a [*a]", "1: a: unknown key"),
        ("a: b: c", "1: not YAML"),
        ("a: 'b", "1: not YAML"),
        ("a: *b", "1: not YAML"),
        ("a: \x07", "not YAML"),
        ("--- {}\n--- {}", "2: not YAML"),
        ("[" * 200_000, "1: nested deeper than 32 levels"),
    ],
)  # fmt: skip
def test_file_is_refused_when_it_says_nonsense(text: str, said: str, tmp_path: Path) -> None:
    (line,) = refused(tmp_path, text)
    place, _, rest = line.partition("specmux.yaml")
    assert (rest or place).lstrip(":").strip().startswith(said)


@pytest.mark.parametrize(
    ("fields_", "said"),
    [
        ("kind: v4", '"v4" is not one of auto, v3, v2, directory'),
        ("kind: directory", "is of kind directory, which needs a directory"),
        ("directory: d", "has a url and a directory"),
        ("group_versions: []", "lists nothing"),
        ("group_versions: [apis//v1]", '"apis//v1" is not a relative URL path'),
        ("group_versions: ['../v1']", '"../v1" holds a dot segment'),
        ("group_versions: apis/apps/v1", "wants a list"),
        ("tls: {key_file: k}", "has tls.key_file without tls.cert_file"),
        ("tls: {ca_file: c, insecure_skip_verify: true}", "has tls.ca_file and tls.insecure_skip_verify"),
        ("tls: {ca_data: AAAA}", "unknown key; a secret is never written here"),
        ("tls: {ca_file: '-----BEGIN CERTIFICATE----- MIIC'}", "holds PEM text where the path"),
        ("token: abc", "unknown key; a secret is never written here"),
        ("credentials: {token: abc}", "unknown key; a secret is never written here"),
        ("credentials: {password: abc}", "unknown key; a secret is never written here"),
        ("credentials: {token_file: eyJhbGciOi.eyJzdWIi.sig}", "holds a token where the path"),
        ('credentials: {remote_user: "a\\r\\nb"}', "empty, or not printable"),
        ("priority: high", '"high" is not a whole number'),
        ("weight: 1", "unknown key; known: name, kind, url"),
    ],
)
def test_backend_is_refused_when_it_contradicts_itself(fields_: str, said: str, tmp_path: Path) -> None:
    lines = refused(tmp_path, ONE_BACKEND % fields_)
    assert len(lines) == 1
    assert said in lines[0]
    assert "backends[0]" in lines[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: a}", "has neither a url nor a directory"),
        ("{name: a, kind: v2, directory: d}", "is of kind v2, which needs a url"),
        ("{name: '', url: 'http://a'}", "is not a name"),
        ("{name: a/b, url: 'http://a'}", "is not a name"),
        ("{name: 1, url: 'http://a'}", "YAML reads this as int"),
        ("{name: a, url: 'http://a', tls: {ca_file: c}}", "its url begins with http://"),
        ("{name: a, directory: d, credentials: {token_file: t}}", "takes neither tls nor credentials"),
        ("{name: a, url: 'http://a'}, {name: a, url: 'http://b'}", "a is the name of another backend"),
    ],
)
def test_backends_are_refused_when_they_cannot_be_meant(text: str, said: str, tmp_path: Path) -> None:
    (line,) = refused(tmp_path, f"backends: [{text}]")
    assert said in line


def test_complaints_never_repeat_a_secret(tmp_path: Path) -> None:
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    said = refused(
        tmp_path,
        f"""
backends:
- {{name: a, url: 'https://admin:{token}@a', token: {token}}}
- {{name: b, url: 'https://b?token={token}', credentials: {{token_file: {token}}}}}
- {{name: c, url: 'https://c', credentials: {{token: {token}, bearer_token: {token}}}}}
""",
    )
    assert len(said) == 6
    assert token not in "".join(said)


def test_a_file_that_is_something_else_is_told_in_few_lines(tmp_path: Path) -> None:
    lines = refused(tmp_path, "".join(f"key{number}: 1\n" for number in range(500)))
    assert len(lines) == 21
    assert lines[-1].endswith("and 480 more")


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"log: {level: \xe4}", b"a" * (FILE_MAX + 1)])
def test_file_is_refused_when_it_is_no_text(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidConfig, match=r"c\.yaml"):
        ConfigSource(file=path).read()


def test_file_is_refused_when_it_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"nowhere\.yaml: No such file"):
        ConfigSource(file=tmp_path / "nowhere.yaml").read()


KEYS = st.sampled_from(["listen", "port", "backends", "name", "url", "tls", "x"])


TREES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(TREES)
def test_any_yaml_is_a_configuration_or_refused(tree: Any) -> None:
    try:
        parse_config_file(yaml.safe_dump(tree), Path("/x/c.yaml"))
    except InvalidConfig as error:
        assert str(error).startswith("/x/c.yaml:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1048576", 1048576),
        ("256MiB", 256 * 2**20),
        ("256 MiB", 256 * 2**20),
        ("1Gi", 2**30),
        ("1.5KiB", 1536),
        ("2MB", 2_000_000),
        ("7B", 7),
    ],
)
def test_bytes_may_have_a_unit(text: str, expected: int) -> None:
    assert field_of("memory.documents_bytes").read(text) == expected


@pytest.mark.parametrize("text", ["", "-1", "1mb", "1 TiB", "0.3B", "1e9", "MiB", "\u0661", "1  MiB"])
def test_bytes_are_refused_when_they_are_none(text: str) -> None:
    with pytest.raises(BadValue):
        field_of("memory.documents_bytes").read(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://a", "http://a"),
        ("https://a:6443/", "https://a:6443"),
        ("https://a/base/path//", "https://a/base/path"),
        ("https://[::1]:443", "https://[::1]:443"),
        ("https://10.0.0.1", "https://10.0.0.1"),
        ("https://a/clusters/root:org", "https://a/clusters/root:org"),
    ],
)
def test_backend_url_is_origin_and_base_path(text: str, expected: str) -> None:
    assert backend_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a:443", "ftp://a", "//a", "file:///etc/passwd", "http://", "http:///x", "http://a:99999", "http://a:x",
        "http://a:0", "http://u@a", "http://u:p@a", "http://a?b", "http://a/?", "http://a#b", "http://a/..", "http://a/%2e",
        "http://a//b", "http://a b", "http://a\\b", "http://a\n", "http://\u00e4", "http://a/openapi/v3", "http://[::1",
        "http://a_/../b", "unix:///run/x",
    ],
)  # fmt: skip
def test_backend_url_is_refused_when_it_is_more_or_less(text: str) -> None:
    with pytest.raises(BadValue):
        backend_url(text)


def test_setting_fields_are_all_of_settings() -> None:
    groups = [item for item in fields(Settings) if item.name != "backends"]
    expected = [
        f"{group.name}.{item.name}" for group in groups for item in fields(getattr(Settings(), group.name))
    ]
    assert [field.key for field in setting_fields()] == expected
    assert all(field.doc for field in setting_fields())
    port = field_of("listen.port")
    assert (port.flag, port.variable) == ("--listen-port", "SPECMUX_LISTEN_PORT")


@pytest.mark.parametrize("field", setting_fields(), ids=lambda field: field.key)
def test_default_of_every_setting_can_be_written(field: SettingField) -> None:
    if field.default is not None:
        text = str(field.default).lower() if field.type is bool else str(field.default)
        assert field.read(text) == field.default


def test_a_cluster_that_only_reviews_callers_needs_no_sources(tmp_path: Path) -> None:
    sources = "in_cluster: true, api_services: false, crds: false, apiserver: false"
    settings = configured(tmp_path, f"auth: {{mode: kubernetes}}\nkubernetes: {{{sources}}}")
    assert settings.kubernetes.is_meant


def test_backend_keys_are_the_fields_of_the_backend() -> None:
    assert set(_BACKEND) == {item.name for item in fields(Backend)} - {
        "tls",
        "credentials",
        "group_versions",
        "urls",
        "found",
    }
    inline = {"ca_data", "cert_data", "key_data", "token", "basic", "exec_plugin", "impersonation"}
    assert set(_GROUPS["tls"]) == {item.name for item in fields(ServerTLS)} - inline
    assert set(_GROUPS["credentials"]) == {item.name for item in fields(Credentials)} - inline
