"""nginx as people put it in front: it serves a service below a path of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deadline import DEADLINE
from running.ports import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="wants nginx: apt-get install nginx-light")

CONFIG = """\
{user}
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
  access_log off;
  {folders}
  server {{
    listen 127.0.0.1:{port};
    location {prefix}/ {{
      proxy_pass {target}/;
    }}
  }}
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@dataclass(frozen=True, slots=True)
class Nginx:
    url: str
    """With the prefix, without a slash at the end."""


@asynccontextmanager
async def nginx_before(target: str, prefix: str) -> AsyncIterator[Nginx]:
    """On a free port of loopback, with what a first configuration has: ``location`` and ``proxy_pass``."""
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = CONFIG.format(
            user="user root;" if os.getuid() == 0 else "",
            folder=folder,
            folders=" ".join(f"{each}_temp_path {folder}/{each};" for each in TEMPORARY),
            port=port,
            prefix=prefix,
            target=target,
        )
        (folder / "nginx.conf").write_text(text)
        process = await asyncio.create_subprocess_exec(
            NGINX or "nginx", "-e", f"{folder}/errors", "-c", f"{folder}/nginx.conf", "-g", "daemon off;"
        )
        try:
            await _listens(port)
            yield Nginx(f"http://127.0.0.1:{port}{prefix}")
        finally:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(DEADLINE):
                await process.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
