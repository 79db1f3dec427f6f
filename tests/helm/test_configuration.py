"""The configuration file of every example, as the service reads it, and what follows from it in the chart."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from running.helm_chart import CHART, EXAMPLES, configuration, container, objects, of_kind, one, require_helm
from specmux_aggregator.cli import main
from specmux_cache.access import in_cluster

require_helm()


def pod_annotations(*arguments: str) -> dict[str, str]:
    return dict(
        one("Deployment", "static-backends", *arguments)["spec"]["template"]["metadata"]["annotations"]
    )


def rights(example: str, *arguments: str) -> set[str]:
    """What the service's own account may do: "verb group/resource", "verb /path"."""
    return {
        f"{verb} {what}"
        for role in of_kind("ClusterRole", example, *arguments)
        if not role["metadata"]["name"].endswith("-metrics-reader")
        for rule in role["rules"]
        for verb in rule["verbs"]
        for what in [
            *rule.get("nonResourceURLs", ()),
            *(f"{group}/{item}" for group in rule.get("apiGroups", ()) for item in rule.get("resources", ())),
        ]
    }


REVIEWS = {
    "create authentication.k8s.io/tokenreviews",
    "create authorization.k8s.io/subjectaccessreviews",
}
API_SERVICES = {f"{verb} apiregistration.k8s.io/apiservices" for verb in ("list", "watch")}
CRDS = {f"{verb} apiextensions.k8s.io/customresourcedefinitions" for verb in ("list", "watch")}
SLICES = {f"{verb} discovery.k8s.io/endpointslices" for verb in ("list", "watch")}
OPENAPI = {"get /openapi/*"}
DISCOVERY = {"get /api", "get /api/*", "get /apis", "get /apis/*", "get /version"}


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the configuration; the process finds a cluster as it does in a pod."""
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("token")
    monkeypatch.setitem(in_cluster.read.__kwdefaults__, "directory", account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES)
def test_service_accepts_it(example: str, pod: Path) -> None:
    path = pod / "specmux.yaml"
    path.write_text(configuration(example))
    extra = {item["name"]: item["value"] for item in container(example).get("env", ())}
    result = CliRunner().invoke(main, ["check-config", str(path)], env=extra)
    assert result.exit_code == 0, result.output
    assert "listen.tls_cert_file: /etc/specmux-tls/tls.crt" in result.output


def test_service_refuses_what_the_schema_cannot_know(pod: Path) -> None:
    path = pod / "specmux.yaml"
    path.write_text(configuration("default", "--set=config.auth.token_file=/tokens"))
    result = CliRunner().invoke(main, ["check-config", str(path)])
    assert result.exit_code == 3
    assert "auth.token_file" in result.output


def test_what_is_configured_wins_over_what_the_chart_adds() -> None:
    config = yaml.safe_load(configuration("default", "--set=config.state.directory=/elsewhere"))
    assert config["state"]["directory"] == "/elsewhere"
    assert config["listen"]["tls_key_file"] == "/etc/specmux-tls/tls.key"


def test_large_numbers_stay_numbers() -> None:
    assert "documents_bytes: 268435456\n" in configuration("static-backends")


def test_changed_backends_leave_pods_alone() -> None:
    before = pod_annotations()["checksum/settings"]
    assert configuration("static-backends") != configuration(
        "static-backends", "--set=config.backends[0].name=b,config.backends[0].url=https://b"
    )
    assert before == pod_annotations("--set=config.backends[0].name=b,config.backends[0].url=https://b")[
        "checksum/settings"
    ]  # fmt: skip


def test_changed_settings_replace_pods() -> None:
    before = pod_annotations()["checksum/settings"]
    assert before != pod_annotations("--set=config.polling.interval=7")["checksum/settings"]
    assert before != pod_annotations("--set=cache.enabled=false")["checksum/settings"]


@pytest.mark.parametrize(
    ("example", "arguments", "wanted"),
    [
        ("default", [], REVIEWS | API_SERVICES | SLICES | CRDS | OPENAPI | DISCOVERY),
        (
            "default",
            ["--set=config.kubernetes.crds=false"],
            REVIEWS | API_SERVICES | SLICES | OPENAPI | DISCOVERY,
        ),
        (
            "default",
            ["--set=config.kubernetes.api_services=false"],
            REVIEWS | CRDS | SLICES | OPENAPI | DISCOVERY,
        ),
        ("default", ["--set=config.kubernetes.apiserver=false"], REVIEWS | API_SERVICES | SLICES | CRDS),
        (
            "default",
            ["--set=config.kubernetes.apiserver=false,config.kubernetes.service_token_file=/token"],
            REVIEWS | API_SERVICES | SLICES | CRDS | OPENAPI | DISCOVERY,
        ),
        (
            "default",
            ["--set=config.discovery.enabled=false"],
            REVIEWS | API_SERVICES | SLICES | CRDS | OPENAPI,
        ),
        ("auth-none", [], API_SERVICES | SLICES | CRDS | OPENAPI | DISCOVERY),
        ("auth-mtls", [], API_SERVICES | SLICES | CRDS | OPENAPI | DISCOVERY),
        (
            "default",
            ["--set-string=config.kubernetes.endpoint_slices=off"],
            REVIEWS | API_SERVICES | CRDS | OPENAPI | DISCOVERY,
        ),
        ("static-backends", [], REVIEWS),
        ("static-backends", ["--set=config.auth.mode=none"], set()),
        ("service-account", [], set()),
        ("extras", [], REVIEWS | API_SERVICES | SLICES | CRDS | OPENAPI | DISCOVERY | {"list /namespaces"}),
    ],
)
def test_rights_are_what_the_configuration_uses(example: str, arguments: list[str], wanted: set[str]) -> None:
    assert rights(example, *arguments) == wanted


@pytest.mark.parametrize(
    ("example", "arguments", "is_mounted"),
    [
        ("default", [], True),
        ("auth-none", [], True),
        ("default", ["--set=apiServiceDiscovery.enabled=false"], True),  # callers are looked up
        ("default", ["--set=apiServiceDiscovery.enabled=false,config.auth.mode=none"], False),
        ("default", ["--set=config.auth.mode=none,config.kubernetes.kubeconfig=/kubeconfig"], False),
        ("static-backends", [], True),
        ("static-backends", ["--set=config.auth.mode=none"], False),
        ("static-backends", ["--set=config.auth.mode=none,serviceAccount.automount=true"], True),
        ("default", ["--set=serviceAccount.automount=false"], False),
        ("service-account", [], True),
        (
            "static-backends",
            [
                "--set=config.auth.mode=none,config.backends[0].name=a,config.backends[0].url=https://a,"
                "config.backends[0].credentials.token_file=/var/run/secrets/kubernetes.io/serviceaccount/token"
            ],
            True,
        ),
        (
            "static-backends",
            ["--set=config.auth.mode=none", '--set-json=rbac.extraRules=[{"verbs":["get"]}]'],
            True,
        ),
    ],
)
def test_pods_have_a_token_where_something_uses_it(
    example: str, arguments: list[str], is_mounted: bool
) -> None:
    spec = one("Deployment", example, *arguments)["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is is_mounted


def test_rights_are_bound_to_the_account_of_the_pods() -> None:
    spec = one("Deployment")["spec"]["template"]["spec"]
    (binding,) = of_kind("ClusterRoleBinding")
    account = one("ServiceAccount")["metadata"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": spec["serviceAccountName"], "namespace": account["namespace"]}
    ]
    assert account["name"] == spec["serviceAccountName"]


def test_prometheus_may_read_metrics_and_nothing_else() -> None:
    (role,) = (item for item in of_kind("ClusterRole", "monitoring") if "reader" in item["metadata"]["name"])
    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    (binding,) = (
        item for item in of_kind("ClusterRoleBinding", "monitoring") if "reader" in item["metadata"]["name"]
    )
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [item["name"] for item in binding["subjects"]] == ["prometheus-k8s"]


def test_port_follows_the_configuration() -> None:
    (port,) = container("service")["ports"]
    (entry,) = one("Service", "service")["spec"]["ports"]
    assert port["containerPort"] == 9443
    assert (entry["port"], entry["targetPort"], entry["nodePort"]) == (6443, port["name"], 30443)


def ingress_paths(example: str) -> set[tuple[str, str, str]]:
    (rule,) = one("Ingress", example)["spec"]["rules"]
    return {
        (item["path"], item["pathType"], item["backend"]["service"]["name"]) for item in rule["http"]["paths"]
    }


def route_paths(example: str, *arguments: str) -> set[tuple[str, str, str]]:
    return {
        (match["path"]["value"], match["path"]["type"], rule["backendRefs"][0]["name"])
        for rule in one("HTTPRoute", example, *arguments)["spec"]["rules"]
        for match in rule["matches"]
    }


US = "release-specmux"


def test_of_a_shared_host_only_discovery_comes_to_us() -> None:
    assert ingress_paths("ingress") == {
        ("/openapi", "Prefix", US),
        ("/api", "Exact", US),
        ("/apis", "Exact", US),
        ("/version", "Exact", US),
        ("/", "Prefix", "apiserver"),
    }


def test_of_a_host_of_our_own_all_discovery_comes_to_us() -> None:
    assert route_paths("httproute") == {
        ("/openapi", "PathPrefix", US),
        ("/api", "PathPrefix", US),
        ("/apis", "PathPrefix", US),
        ("/version", "Exact", US),
    }


@pytest.mark.parametrize("arguments", [(), ("--set=config.proxy=resources",)])
def test_resources_come_to_us_where_they_are_passed_on(arguments: tuple[str, ...]) -> None:
    assert route_paths("proxy-resources", *arguments) == {
        ("/openapi", "PathPrefix", US),
        ("/api", "PathPrefix", US),
        ("/apis", "PathPrefix", US),
        ("/version", "Exact", US),
        ("/healthz", "Exact", "apiserver"),
    }
    assert ("/apis", "Prefix", US) in ingress_paths("proxy-resources")


def test_scrape_shows_a_token_unless_everybody_may_ask() -> None:
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    endpoints = {
        example: one("ServiceMonitor", example)["spec"]["endpoints"][0]
        for example in ("monitoring", "auth-none", "auth-token-file", "auth-mtls", "existing-secret")
    }
    assert endpoints["monitoring"]["bearerTokenFile"] == token
    assert "bearerTokenFile" not in endpoints["auth-none"]
    assert "bearerTokenFile" not in endpoints["auth-token-file"]
    assert endpoints["auth-token-file"]["authorization"]["credentials"]["key"] == "token"
    assert "bearerTokenFile" not in endpoints["auth-mtls"]
    assert endpoints["auth-mtls"]["tlsConfig"]["cert"]["secret"]["name"] == "prometheus-client"
    assert endpoints["monitoring"]["tlsConfig"]["ca"]["secret"]["name"] == one("Secret")["metadata"]["name"]
    assert "ca" not in endpoints["existing-secret"]["tlsConfig"]
    assert all("insecureSkipVerify" not in endpoint["tlsConfig"] for endpoint in endpoints.values())


def test_alerts_are_those_of_the_file_without_the_ones_left_out() -> None:
    source = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    alerts = {rule["alert"]: rule for group in source["groups"] for rule in group["rules"]}
    first, own = one("PrometheusRule", "monitoring")["spec"]["groups"]
    rendered = {rule["alert"]: rule for rule in first["rules"]}
    assert alerts.keys() - rendered.keys() == {"SpecmuxGroupVersionConflicts"}
    for name, rule in rendered.items():
        assert rule == {**alerts[name], "labels": {**alerts[name]["labels"], "team": "platform"}}
    assert own["name"] == "specmux-own"


def test_dashboard_is_the_file() -> None:
    (found,) = (item for item in objects("monitoring") if item["metadata"]["name"].endswith("-dashboard"))
    source = (CHART / "files" / "dashboard.json").read_text()
    assert found["data"]["specmux.json"].strip() == source.strip()
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
