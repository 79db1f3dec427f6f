"""nginx, HAProxy and Varnish in front of a server, as permissive as they can be. Each replaces ``Accept`` by
what only it knows, and names in its answers the target that it took the request for."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from deadline import DEADLINE
from running.ports import free_port

SECRET: Final = "application/from-the-front"

_NGINX: Final = """\
{user}
pid {folder}/pid;
error_log {folder}/errors;
worker_processes 1;
events {{}}
http {{
  access_log off;
  {folders}
  client_header_timeout 1s;
  client_body_timeout 1s;
  ignore_invalid_headers off;
  underscores_in_headers on;
  merge_slashes off;
  upstream behind {{ server 127.0.0.1:{behind}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Accept {secret};
    proxy_ignore_client_abort on;
    add_header X-Target $request_uri always;
    location / {{ proxy_pass http://behind; }}
    location /unbuffered {{ proxy_pass http://behind; proxy_request_buffering off; }}
  }}
}}
"""
_HAPROXY: Final = """\
global
  maxconn 512
defaults
  mode http
  timeout connect 2s
  timeout client 2s
  timeout server 5s
  timeout http-request 1s
  http-reuse always
  option accept-invalid-http-request
frontend front
  bind 127.0.0.1:{port}
  http-request set-var(txn.target) pathq
  http-request set-header Accept {secret}
  http-response set-header X-Target %[var(txn.target)]
  default_backend behind
backend behind
  server behind 127.0.0.1:{behind}
"""
_VARNISH: Final = """\
vcl 4.1;
backend behind {{ .host = "127.0.0.1"; .port = "{behind}"; }}
sub vcl_recv {{
  set req.http.Accept = "{secret}";
  if (req.method !~ "^(GET|HEAD|POST|PUT|OPTIONS)$") {{ return (synth(405)); }}
  if (req.url ~ "^/unbuffered") {{ return (pass); }}
}}
sub vcl_deliver {{ set resp.http.X-Target = req.url; }}
"""
_TEMPORARY: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def program(front: str) -> str | None:
    """Where the front is installed: nginx, haproxy or varnishd."""
    return shutil.which(front) or shutil.which(front, path="/usr/sbin")


@asynccontextmanager
async def in_front(front: str, behind: int, folder: Path) -> AsyncIterator[int]:
    """The port of a front of the server at port ``behind``."""
    port, config = free_port(), folder / "config"
    text = {"nginx": _NGINX, "haproxy": _HAPROXY, "varnishd": _VARNISH}[front]
    folders = " ".join(f"{each}_temp_path {folder}/{each};" for each in _TEMPORARY)
    user = "user root;" if os.getuid() == 0 else ""
    config.write_text(
        text.format(behind=behind, port=port, folder=folder, folders=folders, user=user, secret=SECRET)
    )
    flags = {
        "nginx": ["-e", f"{folder}/errors", "-c", str(config), "-g", "daemon off;"],
        "haproxy": ["-db", "-q", "-f", str(config)],
        "varnishd": f"-F -j none -s default,32m -a 127.0.0.1:{port} -n {folder}/run -f {config}".split(),
    }[front]
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program(front) or front, *flags, stdout=log, stderr=log
        )
    try:
        async with asyncio.timeout(DEADLINE):
            while not await _accepts(port):
                assert process.returncode is None, (folder / "log").read_text()
                await asyncio.sleep(0.05)
        yield port
    finally:
        if process.returncode is None:
            # One process, whose threads may not end by SIGTERM beside a load; the others have to end theirs.
            (process.kill if front == "haproxy" else process.terminate)()
        async with asyncio.timeout(DEADLINE):
            await process.wait()


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return False
    writer.close()
    return True
