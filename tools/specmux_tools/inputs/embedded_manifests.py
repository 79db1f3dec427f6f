"""Manifests within stored objects: what the next ``helm upgrade`` or ``kubectl apply`` starts from.

Helm keeps each release in a Secret or a ConfigMap: base64 of gzip of JSON, with the manifest as text. kubectl
keeps what was applied in an annotation. Either may be of a group-version that the object itself has left.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_converters.errors import cut
from specmux_converters.json_values import array, mapping, text, within
from specmux_converters.lazy.dataclasses import dataclass

RELEASE_MAX: Final = 32 * 1024 * 1024
"""Bytes of an unpacked release; the packed one is at most an object of etcd, 1.5 MiB."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MARKS: Final = (b"helm.sh/release", b"last-applied-configuration", b"owner")
"""One of them stands in every object that has manifests within."""
_HELM: Final = "helm.sh/release.v1"
_PAST: Final = ("superseded", "uninstalled")
"""States of releases that no upgrade starts from."""
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class EmbeddedManifest:
    place: str
    """The name in messages."""
    data: bytes
    fault: str = ""
    """Why it cannot be read."""


def embedded_manifests(value: Any) -> Iterator[EmbeddedManifest]:
    """The manifests within one object."""
    stored = mapping(value)
    is_secret = stored.get("type") == _HELM
    if is_secret or (stored.get("kind") == "ConfigMap" and _label(stored, "owner") == "helm"):
        yield from _of_release(stored, is_secret=is_secret)
    applied = text(within(stored, "metadata", "annotations").get(LAST_APPLIED))
    if applied and _is_other(applied, stored):
        yield EmbeddedManifest("its last-applied-configuration, of the next kubectl apply", applied.encode())


def _of_release(stored: Mapping[str, Any], *, is_secret: bool) -> Iterator[EmbeddedManifest]:
    packed = text(within(stored, "data").get("release"))
    metadata = mapping(stored.get("metadata"))
    named = f"{cut(text(metadata.get('namespace')) or 'default')}/{cut(_label(stored, 'name'))}"
    place = f"Helm's release {named}, revision {cut(_label(stored, 'version'))}, of the next helm upgrade"
    if not packed or _label(stored, "status") in _PAST:
        return
    try:
        data = base64.b64decode(packed, validate=True)
        if is_secret:  # Kubernetes' own base64 around Helm's
            data = base64.b64decode(data, validate=True)
        if data.startswith(_GZIP):
            data = decode_body(data, Coding.GZIP, max_bytes=RELEASE_MAX)
        elif len(data) > RELEASE_MAX:
            raise TooLarge(f"more than {RELEASE_MAX} bytes")
        release = orjson.loads(data)
    except (binascii.Error, BadCoding, TooLarge, ValueError) as error:
        yield EmbeddedManifest(place, b"", cut(str(error)))
        return
    if text(within(release, "info").get("status")) in _PAST:
        return
    for each in (release, *array(mapping(release).get("hooks"))):
        if manifest := text(mapping(each).get("manifest")):
            yield EmbeddedManifest(place, manifest.encode("utf-8", "replace"))


def _label(stored: Mapping[str, Any], name: str) -> str:
    labels = within(stored, "metadata", "labels")
    return text(labels.get(name)) or text(labels.get(name.upper()))


def _is_other(applied: str, stored: Mapping[str, Any]) -> bool:
    """Whether it is of another group-version than the object, which is judged itself."""
    try:
        value = mapping(orjson.loads(applied))
    except ValueError:
        return True
    return any(value.get(name) != stored.get(name) for name in ("apiVersion", "kind"))
