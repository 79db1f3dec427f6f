"""A real nginx in front of several servers of a control plane."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.control_plane import ControlPlane, free_ports
from cluster.serving import until

STREAM_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")

STREAM = """
{load}
stream {{
  upstream servers {{ {servers} }}
  server {{ listen 127.0.0.1:{port}; proxy_pass servers; }}
}}
"""
HTTP = """
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream servers {{ {servers} }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {plane}/apiserver.crt;
    ssl_certificate_key {plane}/apiserver.key;
    location / {{
      proxy_pass https://servers;
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


@contextlib.contextmanager
def nginx(plane: ControlPlane, folder: Path, form: str, *ports: int) -> Iterator[int]:
    """Connections (``stream``) or requests (``http``) to each server in turn; the port."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None or (form == "stream" and not STREAM_MODULE.exists()):
        pytest.skip("nginx is not here: apt-get install nginx-light libnginx-mod-stream")
    folder.mkdir()
    (port,) = free_ports(1)
    text = (STREAM if form == "stream" else HTTP).format(
        load=f"load_module {STREAM_MODULE};",
        servers=" ".join(f"server 127.0.0.1:{each} max_fails=1 fail_timeout=1s;" for each in ports),
        port=port,
        folder=folder,
        plane=plane.folder,
    )
    head, text = (text.split("stream {", 1)[0], text) if form == "stream" else ("", text)
    config = folder / "nginx.conf"
    body = text.removeprefix(head)
    user = "user root;" if os.getuid() == 0 else ""
    config.write_text(f"{head}{user} pid {folder}/pid; error_log {folder}/error.log; events {{}}\n{body}")
    process = subprocess.Popen([program, "-c", str(config), "-g", "daemon off;"])
    try:
        until(lambda: _answers(plane, port), "nginx answers")
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _answers(plane: ControlPlane, port: int) -> bool:
    with contextlib.suppress(OSError):
        # With requests in turn the administrator's certificate does not get through: 401 is an answer.
        return plane.get("/readyz", port=port)[0] in (200, 401)
    return False
