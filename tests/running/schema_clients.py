"""Programs of others that read JSON Schemas: found on this machine, or installed once into a cache of ours.

Each comes from its own registry in a fixed version. Where its toolchain or the registry is missing there is
none: the tests that want it are skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final

from deadline import DEADLINE

KUBECONFORM: Final = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"
PACKAGES: Final = ("yaml-language-server@2.0.0", "ajv@8.17.1", "ajv-formats@3.0.1")
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specmux-tests"
_INSTALL_LIMIT: Final = 240.0

MISSING: Final = "no toolchain for it here, or no registry"


@cache
def kubeconform() -> Path | None:
    found = shutil.which("kubeconform")
    if found is not None:
        return Path(found)
    return go_program(KUBECONFORM)


def go_program(module: str) -> Path | None:
    """That of a package with its version."""
    program = CACHE / "bin" / module.rpartition("@")[0].rpartition("/")[2]
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
    if not program.exists() and go is not None:
        tried([go, "install", module], GOBIN=str(program.parent))
    return program if program.exists() else None


@cache
def node_modules(packages: tuple[str, ...] = PACKAGES, folder: Path = CACHE / "npm") -> Path | None:
    """With the packages in it."""
    npm = shutil.which("npm")
    names = [package.rpartition("@")[0] for package in packages]
    wanted = [folder / "node_modules" / name for name in (".package-lock.json", *names)]  # the first is last
    if npm is not None and not all(path.exists() for path in wanted):
        folder.mkdir(parents=True, exist_ok=True)
        tried([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages])
    return folder / "node_modules" if npm is not None and all(path.exists() for path in wanted) else None


def tried(command: list[str], **environment: str) -> None:
    """One installation at a time: other test processes may want the same."""
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        with (CACHE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(
                command,
                env={**os.environ, **environment},
                capture_output=True,
                timeout=_INSTALL_LIMIT,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return


class LanguageServer:
    """yaml-language-server over its standard input and output, with one document open at a time."""

    def __init__(self, modules: Path) -> None:
        program = modules / "yaml-language-server" / "bin" / "yaml-language-server"
        self._process = subprocess.Popen(
            ["node", str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._settings: dict[str, Any] = {}
        self._received: Queue[dict[str, Any]] = Queue()
        self._opened = 0
        threading.Thread(target=self._read, daemon=True).start()
        capabilities = {
            "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}},
            "textDocument": {"hover": {}, "completion": {}, "publishDiagnostics": {}},
        }
        self._id = 0
        self.request("initialize", processId=None, rootUri=None, capabilities=capabilities)
        self._send(method="initialized", params={})

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def open(self, text: str, settings: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Another document under other settings: its address, and what is told of it."""
        self._settings = {"validate": True, "hover": True, "completion": True, **settings}
        self._send(method="workspace/didChangeConfiguration", params={"settings": {"yaml": self._settings}})
        self._opened += 1
        uri = f"file:///tmp/document-{self._opened}.yaml"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        told = self._wait(
            lambda each: (
                each.get("method") == "textDocument/publishDiagnostics" and each["params"]["uri"] == uri
            )
        )
        return uri, list(told["params"]["diagnostics"])

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        """The result of a request about a place."""
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        return self.request(f"textDocument/{method}", **place)

    def request(self, method: str, **params: Any) -> Any:
        self._id += 1
        number = self._id
        self._send(id=number, method=method, params=params)
        return self._wait(lambda each: each.get("id") == number and "method" not in each).get("result")

    def _wait(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What was waited for; questions of the server are answered meanwhile."""
        while True:
            try:
                message = self._received.get(timeout=DEADLINE)
            except Empty:
                raise AssertionError("the language server said nothing") from None
            if is_it(message):
                return message
            if "method" in message and "id" in message:
                self._send(id=message["id"], result=self._answer(message))

    def _answer(self, message: dict[str, Any]) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        sections = [item.get("section") for item in message["params"]["items"]]
        return [self._settings if section == "yaml" else {} for section in sections]

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while line := stream.readline():
            if line.lower().startswith(b"content-length:"):
                stream.readline()
                self._received.put(json.loads(stream.read(int(line.split(b":")[1]))))
