"""What the chart renders starts: command, configuration and certificate, as clients see them."""

from __future__ import annotations

import ssl
from pathlib import Path

from running.chart_pod import answer, below, secret_data
from running.helm_chart import configuration, container, one, require_helm
from running.process import specmux

require_helm()

VALUES = (
    "--set=apiServiceDiscovery.enabled=false",
    "--set=config.auth.mode=none",
    "--set=config.listen.port=0",
    "--set=config.listen.address=127.0.0.1",
    "--set=config.backends[0].name=documents,config.backends[0].directory=/documents",
)


def test_pod_serves_its_name_over_tls(tmp_path: Path) -> None:
    for folder in ("etc/specmux", "etc/specmux-tls", "var/cache/specmux", "documents"):
        (tmp_path / folder).mkdir(parents=True)
    for name, value in secret_data(one("Secret", "default", *VALUES)).items():
        (tmp_path / "etc/specmux-tls" / name).write_bytes(value)
    rendered = container("default", *VALUES)
    places = ["/documents", *(item["mountPath"] for item in rendered["volumeMounts"])]
    config = configuration("default", *VALUES)
    (tmp_path / "etc/specmux/specmux.yaml").write_text(below(tmp_path, places, config))
    live, ready = (rendered[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe"))
    trust = ssl.create_default_context(cafile=str(tmp_path / "etc/specmux-tls/ca.crt"))
    with specmux(*(below(tmp_path, places, item) for item in rendered["args"])) as process:
        assert answer(process.port, live, trust) == (200, b"ok\n")
        process.until(lambda: answer(process.port, ready, trust)[0] == 200, "ready")
        assert any((tmp_path / "var/cache/specmux").iterdir())
