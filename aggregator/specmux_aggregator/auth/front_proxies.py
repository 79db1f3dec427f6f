"""Users named by a front proxy: X-Remote-* on a connection with its certificate, as in Kubernetes' request
header authentication. From any other client these fields are ignored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from specmux_aggregator.auth.authenticator import AuthRefusal, AuthRequest, RefusalReason
from specmux_aggregator.auth.client_certificates import peer_certificate
from specmux_aggregator.auth.users import User, authenticated_user

USER: Final = "X-Remote-User"
UID: Final = "X-Remote-Uid"
GROUP: Final = "X-Remote-Group"
EXTRA: Final = "x-remote-extra-"

_MALFORMED: Final = AuthRefusal(RefusalReason.MALFORMED, "X-Remote-* fields are repeated, empty or no text")


class FrontProxies:
    """``names``: common names of which a proxy's certificate must have one; None: any."""

    def __init__(self, names: Collection[str] | None) -> None:
        self._names = None if names is None else frozenset(names)

    def user(self, asked: AuthRequest) -> User | AuthRefusal | None:
        """The user of the request; None if no trusted proxy names one."""
        headers = asked.message.headers
        if USER not in headers:
            return None
        certificate = peer_certificate(asked.connection)
        if certificate is None or (self._names is not None and certificate.common_name not in self._names):
            return None
        return _user(headers)


def _user(headers: CIMultiDictProxy[str]) -> User | AuthRefusal:
    names, uids = headers.getall(USER), headers.getall(UID, [])
    if len(names) != 1 or not names[0] or len(uids) > 1:
        return _MALFORMED
    extra: dict[str, tuple[str, ...]] = {}
    for name, value in headers.items():
        if name.lower().startswith(EXTRA):
            key = unquote(name.lower()[len(EXTRA) :])
            extra[key] = (*extra.get(key, ()), value)
    groups = tuple(group for group in headers.getall(GROUP, []) if group)
    try:
        return authenticated_user(names[0], uids[0] if uids else "", groups, extra)
    except TypeError:  # non-UTF-8 arrives as surrogates, which orjson refuses
        return _MALFORMED
