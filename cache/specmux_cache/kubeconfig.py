"""What a kubeconfig says of the server of one context, for programs: where it is, as whom, with which TLS.

It reads what client-go reads: $KUBECONFIG with several files, the first of equal names; certificates inline
or as files beside the kubeconfig; tokens, passwords, client certificates, and programs that print credentials
(client.authentication.k8s.io), run once. No error repeats a value: half of them are secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from specmux_cache.errors import KubeconfigError
from specmux_cache.reading.options import CacheOptions

EXEC_TIMEOUT: Final = 60.0
"""Seconds for a program that prints credentials."""

Value = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """How a client reaches one server."""

    url: str
    context: str
    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext | None
    server_name: str | None
    proxy: str | None


def client_arguments(
    path: Path | None, *, context: str | None, options: CacheOptions | None
) -> tuple[str, CacheOptions, Value]:
    """What a client of this server is made with: positional, and by name. Entries are the context's unless
    the options name a partition. Raises KubeconfigError; blocks."""
    access = read_access(path, context=context, environ=os.environ)
    options = options or CacheOptions()
    if options.partition is None:
        options = replace(options, partition=f"context-{access.context}")
    named: Value = {"headers": access.headers, "tls": access.tls}
    return access.url, options, {**named, "proxy": access.proxy, "server_name": access.server_name}


def read_access(path: Path | None, *, context: str | None, environ: Mapping[str, str]) -> ServerAccess:
    """Of the context of this name, or the current one. Raises KubeconfigError; blocks."""
    merged = _merged(path, environ)
    name = context or next(
        (each["current-context"] for each, _ in merged if each.get("current-context")), None
    )
    if not isinstance(name, str):
        raise KubeconfigError("there is no current-context; name a context")
    chosen, _ = _named(merged, "contexts", "context", name)
    cluster, folder = _named(merged, "clusters", "cluster", str(chosen.get("cluster")))
    user_name = chosen.get("user")
    user, user_folder = ({}, folder) if user_name is None else _named(merged, "users", "user", str(user_name))
    url = cluster.get("server")
    if not isinstance(url, str) or not url:
        raise KubeconfigError(f"the cluster of the context {name} names no server")
    issued = _issued(user, user_folder, environ)
    return ServerAccess(
        url=url.rstrip("/"),
        context=name,
        headers=_headers(user, user_folder, issued),
        tls=_tls(cluster, folder, user, user_folder, issued) if url.startswith("https:") else None,
        server_name=cluster.get("tls-server-name"),
        proxy=cluster.get("proxy-url"),
    )


def _merged(path: Path | None, environ: Mapping[str, str]) -> list[tuple[Value, Path]]:
    """Each file with the folder that its relative paths start at."""
    if path is not None:
        files = [path]
    elif environ.get("KUBECONFIG"):
        listed = [Path(item) for item in environ["KUBECONFIG"].split(os.pathsep) if item]
        files = [item for item in listed if item.exists()] or listed[:1]
    else:
        files = [Path(environ.get("HOME") or Path.home(), ".kube", "config")]
    return [(_loaded(file), file.absolute().parent) for file in files]


def _loaded(file: Path) -> Value:
    import yaml

    try:
        loaded = yaml.safe_load(file.read_text("utf-8-sig"))
    except OSError as error:
        raise KubeconfigError(f"{file}: {error.strerror or 'cannot be read'}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark is not None else str(file)
        raise KubeconfigError(f"{where}: not YAML") from None
    if not isinstance(loaded, dict):
        raise KubeconfigError(f"{file}: not a kubeconfig")
    return loaded


def _named(merged: list[tuple[Value, Path]], plural: str, kind: str, name: str) -> tuple[Value, Path]:
    known: list[str] = []
    for content, folder in merged:
        for item in content.get(plural) or ():
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                known.append(item["name"])
                inner = item.get(kind)
                if item["name"] == name:
                    return (inner if isinstance(inner, dict) else {}), folder
    raise KubeconfigError(f"there is no {kind} {name}; known: {', '.join(sorted(known)) or 'none'}")


def _headers(user: Value, folder: Path, issued: Value) -> dict[str, str]:
    token = issued.get("token") or user.get("token")
    if user.get("tokenFile"):
        token = _read(folder / user["tokenFile"]).decode().strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _tls(cluster: Value, folder: Path, user: Value, user_folder: Path, issued: Value) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As Go does: an intermediate, or the certificate itself, may be trusted without the CA above it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    ca = _pem(cluster, "certificate-authority", folder)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is not None:
        try:
            context.load_verify_locations(cadata=ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError("certificate-authority: no certificates in PEM form") from error
    else:
        context.load_default_certs()
    certificate = _pem(user, "client-certificate", user_folder)
    key = _pem(user, "client-key", user_folder)
    if issued.get("clientCertificateData"):
        certificate, key = (issued[name].encode() for name in ("clientCertificateData", "clientKeyData"))
    if certificate is not None and key is not None:
        with _passing_file(certificate + b"\n" + key) as name:
            try:
                context.load_cert_chain(name, password="")
            except ssl.SSLError as error:
                raise KubeconfigError(
                    "client-certificate: no certificate with its key in PEM form"
                ) from error
    return context


def _pem(entry: Value, name: str, folder: Path) -> bytes | None:
    """The data goes before the file, as in client-go."""
    data = entry.get(f"{name}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error as error:
            raise KubeconfigError(f"{name}-data: not base64") from error
    return _read(folder / entry[name]) if entry.get(name) else None


def _issued(user: Value, folder: Path, environ: Mapping[str, str]) -> Value:
    """What the user's program prints, where it is asked at all."""
    plugin = user.get("exec")
    if not isinstance(plugin, dict) or user.get("token") or user.get("tokenFile"):
        return {}
    command = str(plugin.get("command"))
    command = str(folder / command) if os.sep in command else command
    info = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    added = {str(each["name"]): str(each["value"]) for each in plugin.get("env") or ()}
    try:
        done = subprocess.run(  # noqa: S603  # the user's own kubeconfig names it
            [command, *map(str, plugin.get("args") or ())],
            env={**environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=EXEC_TIMEOUT,
            check=True,
        )
        status = json.loads(done.stdout)["status"]
    except FileNotFoundError as error:
        hint = str(plugin.get("installHint") or "").strip()
        raise KubeconfigError(f"the program {command} is not there; {hint or 'install it'}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise KubeconfigError(f"the program {command} failed: {type(error).__name__}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise KubeconfigError(f"the program {command} printed no ExecCredential") from error
    return status if isinstance(status, dict) else {}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror or 'cannot be read'}") from error


@contextmanager
def _passing_file(content: bytes) -> Iterator[str]:
    """A path under which the content can be read for a moment: OpenSSL reads files only."""
    with tempfile.NamedTemporaryFile() as file:  # mode 0600
        file.write(content)
        file.flush()
        yield file.name
