"""Build the guard of the configured mode and its parts; a mode is imported where it is configured."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from aiohttp.http import RawRequestMessage

from specmux_aggregator.auth.authenticator import Authenticator
from specmux_aggregator.auth.guard import RequestGuard
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.upstream.client import BackendClient
from specmux_aggregator.upstream.credentials import Identities
from specmux_cache.access.urls import is_loopback

logger = logging.getLogger(__name__)

_OPEN: Final[Mapping[str, tuple[str, ...]]] = {
    "as-documents": (),
    "anonymous": ("/schemas/",),
    "path-token": ("/schemas/token/",),
}
"""Paths that the guard leaves to the endpoint, by ``schemas.access``."""

REVIEW_TIMEOUT: Final = 5.0
"""Most seconds for one review: a client waits for it."""


def gate_of(
    settings: Settings,
    metrics: Metrics,
    *,
    cluster: Backend | None,
    identities: Identities | None = None,
    is_authorised_elsewhere: Callable[[RawRequestMessage], bool] = lambda message: False,
) -> RequestGuard | None:
    """The guard that the settings require; None if everybody may ask.

    ``cluster``: the apiserver for reviews, contacted as one of ``identities``. Raises InvalidConfig; blocks
    on files.
    """
    auth = settings.auth
    authority: Authenticator
    match auth.mode:
        case "kubernetes":
            assert cluster is not None, "config/source.py refuses the mode without"
            from specmux_aggregator.auth.front_proxies import FrontProxies
            from specmux_aggregator.auth.kubernetes import KubernetesAuthenticator
            from specmux_aggregator.auth.reviews import Reviews

            front_proxies = None
            if auth.requestheader_ca_file is not None:
                front_proxies = FrontProxies(auth.requestheader_names)
            authority = KubernetesAuthenticator(
                Reviews(_review_client(cluster, settings, identities), metrics, audiences=auth.audiences),
                cache_seconds=auth.cache_seconds,
                review_grace=auth.review_grace,
                front_proxies=front_proxies,
                is_authorised_elsewhere=is_authorised_elsewhere,
            )
        case "token-file":
            assert auth.token_file is not None, "config/source.py refuses the mode without"
            from specmux_aggregator.auth.token_file import TokenFileAuthenticator

            authority = TokenFileAuthenticator(auth.token_file, metrics)
        case "mtls":
            from specmux_aggregator.auth.client_certificates import ClientCertificates

            authority = ClientCertificates(auth.client_names)
        case _:
            return None
    return RequestGuard(
        authority,
        metrics,
        takes_tokens=auth.mode != "mtls",
        open_prefixes=_OPEN[settings.schemas.access] if settings.schemas.enabled else (),
    )


def warn_of_exposure(settings: Settings, address: str, port: int) -> None:
    """Warn of settings that expose data to the network at the bound ``address`` and ``port``. Not refused: a
    mesh or a proxy may stand in front."""
    listen, mode = settings.listen, settings.auth.mode
    if is_loopback(address):
        return
    if mode == "none":
        logger.warning(
            "everybody who reaches %s port %d may read every document: auth.mode is none",
            address,
            port,
        )
    elif listen.tls_cert_file is None:
        logger.warning(
            "bearer tokens cross the network to %s port %d in the clear: listen.tls_cert_file is not set",
            address,
            port,
        )


def _review_client(cluster: Backend, settings: Settings, identities: Identities | None) -> BackendClient:
    polling = settings.polling
    bounded = replace(
        polling,
        connect_timeout=min(polling.connect_timeout, REVIEW_TIMEOUT),
        idle_timeout=min(polling.idle_timeout, REVIEW_TIMEOUT),
        total_timeout=min(polling.total_timeout, REVIEW_TIMEOUT),
    )
    return BackendClient(cluster, polling=bounded, limits=settings.limits, identities=identities)
