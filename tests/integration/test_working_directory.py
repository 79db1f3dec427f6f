"""A service whose working directory is deleted."""

from __future__ import annotations

import json
from pathlib import Path

from running.process import specmux, write_documents

KEY = "apis/garden.example.org/v1"


def test_workers_start_in_a_directory_that_is_gone(tmp_path: Path) -> None:
    document = {"openapi": "3.0.0", "info": {"title": "garden", "version": "v1"}, "paths": {}}
    folder = write_documents(tmp_path / "documents", {KEY: json.dumps(document).encode()})
    gone = tmp_path / "gone"
    gone.mkdir()
    config = tmp_path / "config.json"
    backends = [{"name": "garden", "kind": "directory", "directory": str(folder)}]
    config.write_text(json.dumps({"listen": {"port": 0}, "backends": backends}))
    leaving = ("sh", "-c", f'cd "{gone}" && rmdir "{gone}" && exec "$@"', "sh")
    with specmux("serve", "--config", str(config), under=leaving) as process:
        process.until_ready()
        process.until(lambda: KEY in process.paths(), "built")
        assert process.stop() == 0
        assert "does not start" not in process.output
        assert "Traceback" not in process.output
