"""The lines that the demonstration prints: what to try, against the address it runs at. Pure."""

from __future__ import annotations

from pathlib import Path

from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import CBOR, PROTOBUF

STALE = "0123456789ABCDEF"
SHOWN = 4
"""Group-versions of a backend that are named."""


def tour(url: str, snapshot: Snapshot, *, native: GroupVersion, converted: GroupVersion, edited: Path) -> str:
    """What to paste into another terminal."""
    hash_url = f"{url}/openapi/v3/{native}?hash={snapshot.entries[native].offer.hash}"
    backends = "\n".join(
        f"  {name:<10} speaks {observation.dialect}: {', '.join(sorted(observation.offers)[:SHOWN])}"
        f"{' …' * (len(observation.offers) > SHOWN)}"
        for name, observation in sorted(snapshot.observations.items())
    )
    return f"""\
specmux is serving at {url}

{backends}

Every kind and field, in a browser: {url}/openapi/ui/

Try, in another terminal:

  # the discovery root: every group-version with its hash URL
  curl -s {url}/openapi/v3

  # a document under its hash, cacheable for ever
  document='{hash_url}'
  curl -si "$document" | head -12

  # a document whose backend has Swagger 2.0 only
  curl -s {url}/openapi/v3/{converted}

  # as Protobuf, and as CBOR
  curl -s -H 'Accept: {PROTOBUF}' "$document" | wc -c
  curl -s -H 'Accept: {CBOR}' "$document" | xxd | head -3

  # a stale hash redirects to the current one
  curl -si '{url}/openapi/v3/{native}?hash={STALE}&timeout=32s' | grep -iE '^HTTP|^location'

  # nothing new: 304
  etag=$(curl -sI {url}/openapi/v3 | tr -d '\\r' | sed -n 's/^ETag: //p')
  curl -si -H "If-None-Match: $etag" {url}/openapi/v3 | head -1

  # an unmodified kubectl: a kind of the backend that has Swagger 2.0 only, a custom resource, all kinds
  kubectl --server={url} explain books.spec
  kubectl --server={url} explain trees.spec
  kubectl --server={url} api-resources

  # the state of the backends, and metrics
  curl -s {url}/status
  curl -s {url}/metrics | grep specmux_aggregation_duration_seconds_count

  # edit a document: its hash in the root changes within a second
  sed -i 's/measures/reports/' {edited}

Ctrl-C ends it.
"""
