"""Extract the resources of a stored document from its bytes; runs in a worker process. Pure."""

from __future__ import annotations

from typing import Any

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.document import Document, Limits, parse
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion, split
from specmux_schemas.built_in_names import built_in_names
from specmux_schemas.resources import Resources
from specmux_schemas.synthesis import named, synthesise


def resources_in(
    body: bytes, coding: Coding, group_version: GroupVersion, *, limits: Limits
) -> Resources | Failure:
    """The resources of one document, from its JSON. Kubernetes' own get their short names, which no document
    contains."""
    try:
        document = parse(decoded(body, coding, max_bytes=limits.max_bytes), limits=limits)
    except (BadCoding, TooLarge, ConverterError) as error:
        return Failure(Cause.BAD_BODY, str(error))
    return resources_of(document, group_version)


def resources_of(document: Document, group_version: GroupVersion) -> Resources:
    """As above, of a parsed document, whatever the order of its keys."""
    paths = document.get("paths")
    if isinstance(paths, dict):
        document = {**document, "paths": {path: _sorted(item) for path, item in sorted(paths.items())}}
    parts = split(group_version)
    return named(synthesise(document, group_version), {} if parts is None else built_in_names(parts[0]))


def _sorted(item: Any) -> Any:
    return dict(sorted(item.items())) if isinstance(item, dict) else item
