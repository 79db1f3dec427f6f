"""The address of a server, and the URLs that belong to it.

Invariant: no request leaves the origin and base path given by the caller.
"""

from __future__ import annotations

from typing import Final, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern

ROOT_PATH: Final = "/openapi/v3"
STORED_TREES: Final = ("/openapi/v3", "/openapi/v2", "/apis", "/api")
HASH_PARAMETERS: Final = ("hash", "etag")
"""The parameter names of Kubernetes and of KEP-2896."""
NOT_NAMING: Final = frozenset({*HASH_PARAMETERS, "timeout"})
"""Parameters that do not identify a resource; client-go adds ``timeout=32s`` to every request."""
_PATH_SAFE: Final = "/:@!$&'()*+,;=-._~"
_PLAIN: Final = pattern(r"/openapi/v3(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+\?hash=[A-Za-z0-9]+")
"""References as servers write them: each is its own target."""


@dataclass(frozen=True, slots=True)
class Server:
    """An origin and the path before ``/openapi``; ``str`` returns its identity."""

    scheme: str
    authority: str
    base: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises ValueError for anything but ``http(s)://host[:port][/path]``."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a server is http://host or https://host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("credentials belong in the headers, not in the server's URL")
        if parts.query or parts.fragment:
            raise ValueError("a server's URL has no query and no fragment")
        base = parts.path.rstrip("/")
        if not _is_plain(base or "/"):
            raise ValueError("a server's path has no empty, '.' or '..' segments")
        return cls(parts.scheme, _authority(parts.scheme, parts.hostname, parts.port), base)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.base}"

    def url(self, target: str) -> str:
        """The URL of a target (path and query below the base path)."""
        return str(self) + target

    def target(self, reference: str, *, beside: str = ROOT_PATH) -> str | None:
        """The target that a URL reference of this server means; None if it leads elsewhere.

        ``beside``: the target that contained it. A path without the base path is assumed to be below it: a
        server behind a prefix does not know the prefix (kubernetes/kubernetes#117463).
        """
        if _PLAIN.fullmatch(reference) and not (self.base and reference.startswith(self.base)):
            return reference
        try:
            found = urlsplit(urljoin(self.url(beside), reference))
            authority = _authority(found.scheme, found.hostname or "", found.port)
        except ValueError:
            return None
        if (found.scheme, authority) != (self.scheme, self.authority):
            return None
        path = found.path
        if self.base and (path == self.base or path.startswith(self.base + "/")):
            path = path[len(self.base) :]
        if not (_is_plain(path) and is_storable_path(path)):
            return None
        return urlunsplit(("", "", quote(unquote(path), safe=_PATH_SAFE), found.query, ""))


def is_storable_path(path: str) -> bool:
    """Whether a path belongs to the trees whose answers may be stored."""
    return any(path == tree or path.startswith(tree + "/") for tree in STORED_TREES)


def hash_in(target: str) -> str:
    """The hash in a target; "" if there is none."""
    if _PLAIN.fullmatch(target):
        return target.rpartition("=")[2]
    query = dict(reversed(parse_qsl(urlsplit(target).query)))
    return next((query[name] for name in HASH_PARAMETERS if query.get(name)), "")


def name_of(target: str) -> str:
    """The identity of a target's resource: its path, and the relevant parameters in a fixed order."""
    parts = urlsplit(target)
    query = sorted(
        pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in NOT_NAMING
    )
    return urlunsplit(("", "", parts.path, urlencode(query), ""))


def _authority(scheme: str, host: str, port: int | None) -> str:
    name = f"[{host}]" if ":" in host else host.lower()
    return f"{name}:{port or (443 if scheme == 'https' else 80)}"


def _is_plain(path: str) -> bool:
    segments = unquote(path).split("/")
    return (
        path.startswith("/")
        and not {".", ".."} & set(segments)
        and "" not in segments[1:-1]
        and "\\" not in path
    )
