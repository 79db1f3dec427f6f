"""A service that stands for an apiserver of a release, of which it has only the package's documents."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
from click.testing import CliRunner

from running.process import specmux
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_aggregator.cli import main
from specmux_converters.group_versions import GroupVersion

RELEASE = "1.36"


def test_service_publishes_the_documents_and_the_discovery_of_a_release(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    backends = [{"name": "builtin", "kubernetes": RELEASE}]
    config.write_text(json.dumps({"listen": {"port": 0}, "backends": backends}))
    keys = set(built_in_releases().group_versions(RELEASE))
    with specmux("serve", "--config", str(config)) as process:
        process.until_ready()
        process.until(lambda: set(process.paths()) == keys, "published")
        url = f"http://127.0.0.1:{process.port}"
        served = CliRunner().invoke(main, ["get", "apps/v1", "--server", url])
        explained = CliRunner().invoke(main, ["explain", "deploy.spec.replicas", "--server", url])

    assert orjson.loads(served.stdout) == built_in_releases().document(RELEASE, GroupVersion("apis/apps/v1"))
    assert (explained.exit_code, "replicas <integer>" in explained.stdout) == (0, True)


def test_configuration_says_what_is_wrong_with_a_release(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    for extra, fault in (
        ({"kubernetes": "1.29"}, 'no release "1.29": give one of 1.30 to'),
        ({"kubernetes": RELEASE, "directory": "a"}, "has a directory and a kubernetes; it can be only one"),
        ({"kubernetes": RELEASE, "kind": "v3"}, "is of kind v3"),
        ({"kubernetes": RELEASE, "proxy_url": "http://127.0.0.1:1"}, "takes no proxy_url"),
    ):
        config.write_text(json.dumps({"backends": [{"name": "builtin", **extra}]}))
        refused = CliRunner().invoke(main, ["check-config", str(config)])
        assert (refused.exit_code, fault in refused.output) == (3, True), refused.output
    config.write_text(json.dumps({"backends": [{"name": "builtin", "kubernetes": RELEASE}]}))
    probed = CliRunner().invoke(main, ["check-config", str(config), "--probe"])
    assert f"Kubernetes {RELEASE}, 64 documents of the package" in probed.output
