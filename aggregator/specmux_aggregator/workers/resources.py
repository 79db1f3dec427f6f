"""Extract the resources of a stored document from its bytes; runs in a worker process. Pure."""

from __future__ import annotations

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.document import Limits, parse
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import Resources
from specmux_converters.synthesis import resources_of


def resources_in(
    body: bytes, coding: Coding, group_version: GroupVersion, *, limits: Limits
) -> Resources | Failure:
    """The resources of one document, from its JSON. Kubernetes' own get their short names, which no document
    contains."""
    try:
        document = parse(decode_body(body, coding, max_bytes=limits.max_bytes), limits=limits)
    except (BadCoding, TooLarge, ConverterError) as error:
        return Failure(Cause.BAD_BODY, str(error))
    return resources_of(document, group_version)
