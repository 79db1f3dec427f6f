"""The servers that a serving benchmark compares: specmux, nginx and Granian, on one core."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import orjson

SPECMUX = Path(sys.executable).with_name("specmux")
SERVER_CORE, CLIENT_CORE = "0", "1"
LIMIT = 120.0  # seconds to start, documents included
NO_SETTINGS = ("SPECMUX_SHARED", "SPECMUX_MADE_DOCUMENTS")
"""Variables with the prefix of settings that are none; the service refuses those."""

NGINX = """
daemon off; worker_processes 1; pid {run}/nginx.pid; error_log {run}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; server_tokens off; keepalive_requests 100000000; keepalive_timeout 75;
  sendfile {sendfile}; tcp_nopush {sendfile}; tcp_nodelay on;
  open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h; open_file_cache_min_uses 1;
  gzip_static on; types {{ }} default_type application/json; absolute_redirect off;
  client_body_temp_path {run}; proxy_temp_path {run}; fastcgi_temp_path {run}; uwsgi_temp_path {run};
  scgi_temp_path {run};
  server {{
    listen 127.0.0.1:{port}{tls};
    add_header Vary "Accept, Accept-Encoding";
    location = /openapi/v3 {{ alias {files}/root.json; add_header Cache-Control "no-cache"; }}
    location /stale/ {{ return 301 "?hash={hash}"; }}
    location /openapi/v3/ {{
      alias {files}/documents/;
      add_header Cache-Control "public, max-age=31536000, immutable"; expires 1y;
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Server:
    """A process under test."""

    name: str
    port: int
    pid: int
    fields: Mapping[str, str] = field(default_factory=dict)
    """What every request to it carries."""
    is_encrypted: bool = False
    context: ssl.SSLContext | None = None
    """What it is asked with; None: nothing in particular."""

    @property
    def is_nginx(self) -> bool:
        return self.name.startswith("nginx")

    def cpu(self) -> int:
        """Nanoseconds that its threads have run."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def rss(self) -> float:
        """MiB, without children."""
        return resident(self.pid)

    def get(self, target: str, **fields: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        if self.is_encrypted:
            # The certificate was made a moment ago, here.
            context = self.context or ssl._create_unverified_context()
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        try:
            connection.request("GET", target, headers={**headers, **self.fields})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()


@contextlib.contextmanager
def specmux(
    directory: Path,
    *flags: str,
    name: str = "specmux",
    expected: int = 1,
    fields: Mapping[str, str] = MappingProxyType({}),
    is_encrypted: bool = False,
    context: ssl.SSLContext | None = None,
    cores: str = SERVER_CORE,
) -> Iterator[Server]:
    """``specmux serve`` of a directory, ready with all its documents."""
    environment = {name: value for name, value in os.environ.items() if name not in NO_SETTINGS}
    command = ["taskset", "-c", cores, str(SPECMUX), "serve", "--directory", str(directory)]
    with tempfile.NamedTemporaryFile("w+") as log:
        process = subprocess.Popen(
            [*command, "--listen-port", "0", *flags], stderr=log, start_new_session=True, env=environment
        )
        try:
            port = listening_port(process, Path(log.name))
            server = Server(name, port, process.pid, fields, is_encrypted, context)
            deadline = time.monotonic() + LIMIT
            while len(orjson.loads(server.get("/openapi/v3")[2]).get("paths", ())) < expected:
                if time.monotonic() > deadline:
                    raise SystemExit(f"{name} has not published {expected} group-versions")
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def bare_tls(certificate: Path, size: int) -> Iterator[Server]:
    """The least that a TLS server in Python does, with an answer of ``size`` bytes."""
    program = Path(__file__).with_name("bare_tls_server.py")
    command = ["taskset", "-c", SERVER_CORE, sys.executable, str(program), str(certificate), str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server("bare", int(process.stdout.readline()), process.pid, is_encrypted=True)
        finally:
            process.terminate()


def listening_port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + LIMIT
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"serving on \S+:(\d+)/$", log.read_text(), re.MULTILINE):
            return int(found[1])
        time.sleep(0.1)
    raise SystemExit(f"specmux did not start: {log.read_text()}")


@contextlib.contextmanager
def nginx(run: Path, sendfile: str, hash_: str, *, certificate: Path | None = None) -> Iterator[Server]:
    """One nginx worker that serves ``run/files``."""
    name = "nginx" if sendfile == "on" else "nginx without sendfile"
    port = 18100 if sendfile == "on" else 18101
    tls = ""
    if certificate is not None:
        tls = f" ssl; ssl_protocols TLSv1.3; ssl_certificate {certificate}; ssl_certificate_key {certificate}"
    own = run / f"nginx-{sendfile}"
    own.mkdir()
    own.chmod(0o755)
    run.chmod(0o755)
    config = own / "nginx.conf"
    config.write_text(
        "user root;\n"
        + NGINX.format(run=own, files=run / "files", port=port, tls=tls, sendfile=sendfile, hash=hash_)
    )
    process = subprocess.Popen(["taskset", "-c", SERVER_CORE, "nginx", "-c", str(config), "-p", str(own)])
    try:
        deadline = time.monotonic() + 10
        while not (workers := descendants(process.pid)):
            if time.monotonic() > deadline:
                raise SystemExit("nginx did not start")
            time.sleep(0.1)
        yield Server(name, port, workers[0], is_encrypted=certificate is not None)
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def granian(run: Path) -> Iterator[Server]:
    """One worker of Granian with one thread, which serves ``run/files`` from memory."""
    port = 18102
    program = Path(sys.executable).with_name("granian")
    options = [
        "--interface",
        "rsgi",
        "--port",
        str(port),
        "--workers",
        "1",
        "--runtime-threads",
        "1",
        "--no-ws",
    ]
    process = subprocess.Popen(
        ["taskset", "-c", SERVER_CORE, str(program), *options, "--log-level", "error", "granian_app:app"],
        cwd=Path(__file__).parent,
        env={**os.environ, "SERVED_FILES": str(run / "files")},
    )
    try:
        deadline = time.monotonic() + LIMIT
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            if time.monotonic() > deadline:
                raise SystemExit("Granian did not start")
            time.sleep(0.1)
        yield Server("Granian", port, descendants(process.pid)[-1])
    finally:
        process.terminate()
        process.wait(10)


def descendants(pid: int) -> list[int]:
    """Processes that this one started, and those that they did; the fork server is the child of a thread."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def resident(pid: int) -> float:
    return _mebibytes(f"/proc/{pid}/status", "VmRSS")


def proportional(pid: int) -> float:
    """Resident, of pages that processes have in common each one's share."""
    return _mebibytes(f"/proc/{pid}/smaps_rollup", "Pss")


def _mebibytes(file: str, name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(file).read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0
