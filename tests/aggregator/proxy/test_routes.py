"""Who is asked, given what is known of the backends."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

from running.service import backend, directory
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.model.backend import Backend, BackendKind, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.proxy.routes import owner_of, swagger_candidates, without_credentials
from specmux_cache.access.server_access import Credentials, ServerTLS
from specmux_converters.group_versions import GroupVersion

APPS, CUSTOM = GroupVersion("apis/apps/v1"), GroupVersion("apis/example.io/v1")


def seen(backend: Backend, *group_versions: GroupVersion, **fields: Any) -> Observation:
    offers = {key: Offer(hash=Hash("A"), provenance=Provenance.NATIVE) for key in group_versions}
    return Observation(backend=backend, offers=MappingProxyType(offers), attempted=True, **fields)


def snapshot_of(*observations: Observation) -> Any:
    return merge({item.backend.name: item for item in observations}, generation=1)


CLUSTER = backend("kubernetes", "https://10.0.0.1", found=ClusterFacts(is_fallback=True))
EXTENSION = backend("v1.apps", "https://apps.svc", found=ClusterFacts())
DEFINITIONS = backend("kubernetes-crds", kind=BackendKind.CRDS, found=ClusterFacts())


def test_owner_is_who_publishes_the_group_version() -> None:
    low, high = backend("low", "http://a"), backend("high", "http://b", priority=1)
    snapshot = snapshot_of(seen(low, APPS, CUSTOM), seen(high, APPS))
    assert owner_of(snapshot, APPS) == high
    assert owner_of(snapshot, CUSTOM) == low
    assert owner_of(snapshot, GroupVersion("apis/none/v1")) is None


def test_group_version_that_nobody_published_is_the_clusters() -> None:
    snapshot = snapshot_of(seen(CLUSTER, APPS), seen(backend("other", "http://a")))
    assert owner_of(snapshot, GroupVersion("apis/new/v1")) == CLUSTER


def test_resources_of_watched_definitions_are_at_the_apiserver() -> None:
    snapshot = snapshot_of(seen(DEFINITIONS, CUSTOM), seen(CLUSTER, APPS))
    assert owner_of(snapshot, CUSTOM) == CLUSTER
    assert owner_of(snapshot_of(seen(DEFINITIONS, CUSTOM)), CUSTOM) is None


def test_directory_has_no_resources_even_beside_a_cluster(tmp_path: Path) -> None:
    snapshot = snapshot_of(seen(directory("files", tmp_path), CUSTOM), seen(CLUSTER, APPS))
    assert owner_of(snapshot, CUSTOM) is None


def test_swagger_is_asked_for_by_precedence_the_cluster_before_its_parts(tmp_path: Path) -> None:
    configured, first = backend("b", "http://b"), backend("z", "http://z", priority=5)
    snapshot = snapshot_of(
        seen(EXTENSION), seen(CLUSTER), seen(configured), seen(first), seen(directory("files", tmp_path))
    )
    assert swagger_candidates(snapshot) == (first, configured, CLUSTER)
    assert swagger_candidates(snapshot_of(seen(EXTENSION))) == (EXTENSION,)


def test_swagger_is_asked_for_in_the_same_order_whoever_is_away() -> None:
    lost, failing = backend("a", "http://a"), backend("b", "http://b")
    snapshot = snapshot_of(
        seen(lost, failure=Failure(Cause.REFUSED, "")),
        seen(failing, failure=Failure(Cause.SERVER_ERROR, "")),
        seen(CLUSTER, failure=Failure(Cause.TIMEOUT, "")),
        seen(EXTENSION),
    )
    assert swagger_candidates(snapshot) == (lost, failing, CLUSTER)


def test_without_credentials_nothing_is_left_that_speaks_for_us() -> None:
    tls = ServerTLS(
        ca_file=Path("ca"),
        cert_file=Path("cert"),
        key_file=Path("key"),
        server_name="name",
        ca_data=b"ca",
        cert_data=b"cert",
        key_data=b"key",
    )
    credentials = Credentials(
        token_file=Path("token"), token="t", remote_user="u", impersonation=(("Impersonate-User", "x"),)
    )
    bare = without_credentials(
        backend("a", "https://a", tls=tls, credentials=credentials, proxy_url="http://p")
    )
    assert bare.credentials == Credentials()
    assert bare.tls == ServerTLS(ca_file=Path("ca"), server_name="name", ca_data=b"ca")
    assert (bare.url, bare.proxy_url) == ("https://a", "http://p")
