"""GETs with a command's credentials, for answers that no cache stores: a status page, a document's URL.

Sent by the client's own transport. A redirect is followed within the server alone: credentials are shown to
nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import orjson

from specmux_aggregator.console import announce_wait
from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_cache.access.server_access import ClientAccess
from specmux_cache.errors import BadAnswer, RequestError
from specmux_cache.http.caching import Answer, first
from specmux_cache.http.server import Server
from specmux_cache.http.transport import Transport
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.errors import cut
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions

REDIRECTED: Final = (301, 302, 303, 307, 308)
REDIRECTS_MAX: Final = 5
CONNECT_TIMEOUT: Final = 5.0
"""Seconds; as the client's."""
ANSWER_MAX: Final = 64 * 1024 * 1024
_LOGIN: Final = (401, 403)
_LOGIN_STEP: Final = "; give a token with --token-file"
_ACCEPT: Final = "application/json, application/yaml;q=0.5, */*;q=0.1"


class ServerConnection:
    """One GET after the other to one server. ``most``: bytes of a body. Raises SourceUnreachable."""

    def __init__(self, access: ClientAccess, *, most: int, timeout: float) -> None:
        """``timeout``: seconds for a whole answer. Raises SourceError for a URL that is no server's."""
        parts = urlsplit(access.url)
        self.url = access.url
        try:
            self._server = Server.parse(f"{parts.scheme}://{parts.netloc}")
        except ValueError as error:
            raise SourceError(f"{access.url}: {error}") from error
        self._transport = Transport(
            self._server,
            headers={"User-Agent": "specmux", **access.headers},
            tls=access.tls,
            server_name=access.server_name,
            proxy=access.proxy,
            connect_timeout=min(CONNECT_TIMEOUT, timeout),
            timeout=timeout,
            max_body_bytes=most,
        )

    def __enter__(self) -> ServerConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close_in_place()

    def send(self, target: str, fields: Mapping[str, str]) -> Answer:
        """Any answer, redirects too; its body is as it came, in a coding that ``fields`` ask for."""
        return self._send(self.url + target, fields, unpacks=False)

    def fetch(self, path: str, *, accept: str = "*/*") -> Answer:
        """The answer at ``path``, which may begin with "?" where the URL is the document's own."""
        url = self.url + path
        for _ in range(REDIRECTS_MAX + 1):
            answer = self._send(url, {"Accept": accept}, unpacks=True)
            if answer.status not in REDIRECTED:
                return answer
            url = _target(url, first(answer.fields, "location") or "")
        raise SourceUnreachable(f"{url}: more than {REDIRECTS_MAX} redirects")

    def _send(self, url: str, fields: Mapping[str, str], *, unpacks: bool) -> Answer:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lowered = {name.lower(): value for name, value in fields.items()}
        try:
            with announce_wait(self.url):
                return self._transport.get_in_place(self._server.url(target), lowered, unpacks=unpacks)
        except BadAnswer as error:
            is_large = isinstance(error.__cause__, OverflowError)
            reason = f"more than {self._transport.max_body_bytes} bytes" if is_large else error.reason
            raise SourceUnreachable(f"{url}: {reason}") from error
        except RequestError as error:
            from specmux_tools.sources.remote.servers import next_step

            raise SourceUnreachable(f"{url}: {error.reason}{next_step(error)}") from error


def _target(url: str, location: str) -> str:
    """The target of a redirect. Raises SourceUnreachable where that is another server, or no URL."""
    try:
        target = urljoin(url, location)
        leaves = urlsplit(target)[:2] != urlsplit(url)[:2]
    except ValueError as error:
        raise SourceUnreachable(f"{url}: redirects to what is no URL") from error
    if not location:
        raise SourceUnreachable(f"{url}: redirects without saying where; check the URL, its path included")
    if leaves:
        # Without its query: a login page's holds what nobody should paste.
        shown = cut(urlsplit(target)._replace(query="", fragment="").geturl())
        raise SourceUnreachable(f"{url}: redirects to {shown}; name that URL, or log in there")
    return target


def answer_of(options: SourceOptions, path: str, *, what: str) -> dict[str, Any]:
    """The JSON object at ``path``. ``what``: the server that has it.

    Raises SourceError, SourceUnreachable.
    """
    access = access_of(options)
    with ServerConnection(access, most=ANSWER_MAX, timeout=options.request_timeout) as connection:
        answer = connection.fetch(path)
    if answer.status == 404:
        raise SourceUnreachable(f"{access.url}: no {path} there; check the URL: it has to be that of {what}")
    if answer.status in _LOGIN:
        raise SourceUnreachable(f"{access.url}: the server answered {answer.status}{_LOGIN_STEP}")
    try:
        value = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        value = None
    if answer.status != 200 or not isinstance(value, dict):
        raise SourceUnreachable(f"{access.url}{path}: {answer.status}, and no JSON object: it is not {what}")
    return value


def download(source: SourceOptions) -> bytes:
    """The document at the URL of ``--server``, its query included. Raises SourceError, SourceUnreachable."""
    base, question, query = (source.server or "").partition("?")
    server = base.removesuffix(SWAGGER_PATH)
    rest = f"{base.removeprefix(server)}{question}{query}"
    access = access_of(replace(source, server=server))
    with ServerConnection(
        access, most=DEFAULT_LIMITS.max_bytes, timeout=source.request_timeout
    ) as connection:
        answer = connection.fetch(rest, accept=_ACCEPT)
    if answer.status != 200:
        step = _LOGIN_STEP if answer.status in _LOGIN else ""
        raise SourceError(f"{access.url}{rest}: answered {answer.status}{step}")
    return answer.body
