"""``specmux diff`` of documents that a service kept: asked of it, and read from its state directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import yaml
from click.testing import CliRunner

from data.compared import definition
from running.process import Process, specmux
from specmux_aggregator.cli import main

KEY = "apis/example.com/v1"
CONFIG = """\
listen: {{port: 0, shutdown_timeout: 1}}
changes: {{settle: 0}}
state: {{directory: "{state}"}}
backends: [{{name: crds, kind: crds, directory: "{folder}"}}]
"""


def write(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    (folder / "widgets.yaml").write_text(yaml.safe_dump(definition(schema)))


def entries(process: Process) -> list[dict[str, Any]]:
    status, _, body = process.get(f"/openapi/changes/{KEY}")
    return list(orjson.loads(body)["entries"]) if status == 200 else []


def run(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["diff", *map(str, arguments)])
    return result.exit_code, result.output


def test_hashes_are_compared_by_the_service_and_from_its_state_directory(tmp_path: Path) -> None:
    folder, state, config = tmp_path / "crds", tmp_path / "state", tmp_path / "specmux.yaml"
    write(folder, "a", "b")
    config.write_text(CONFIG.format(state=state, folder=folder))
    with specmux("serve", "--config", str(config)) as process:
        process.until_ready()
        process.until(lambda: _kept(process), "kept")
        write(folder, "a")
        process.until(lambda: entries(process), "an entry")
        (entry,) = entries(process)
        old, new = entry["old"]["hash"], entry["new"]["hash"]
        url = f"http://127.0.0.1:{process.port}"
        code, told = run(old, new, "-g", KEY, "--server", url)
        assert code == 1
        assert "Widget spec.b" in told
        assert run(old, new, "-g", "example.com/v2", "--server", url)[0] == 3
        process.stop()
    assert run(old, new, "-g", KEY, "--state", state) == (code, told)
    beside_a_file = run(old, folder, "-g", KEY, "--state", state)
    assert beside_a_file[0] == code
    assert beside_a_file[1].splitlines()[:2] == told.splitlines()[:2]
    code, told = run("A" * 128, new, "-g", KEY, "--state", state)
    assert code == 3
    assert "no document AAAAAAAAAAAA" in told


def _kept(process: Process) -> bool:
    """Whether what was there at the start is at hand."""
    return b"specmux_change_documents_bytes 0.0" not in process.get("/metrics")[2]
