"""Many group-version documents as one, KEP-2896's "client side utility to aggregate all the endpoints": the
converters' merge, told in the client's values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from specmux_cache.errors import MergeRefused
from specmux_cache.reading.results import MergedDocument
from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.merging import merge


def merge_documents(documents: Mapping[str, Mapping[str, Any]]) -> MergedDocument:
    """One document from several, by group-version; they are not modified. Raises MergeRefused if one is not a
    document, or there are none."""
    try:
        merged = merge({GroupVersion(key): dict(document) for key, document in documents.items()})
    except ConverterError as error:
        raise MergeRefused(str(error)) from error
    renamed: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for each in merged.renamed:
        renamed[each.group_version][f"{each.kind}/{each.name}"] = f"{each.kind}/{each.new_name}"
    dropped: defaultdict[str, list[str]] = defaultdict(list)
    for conflict in merged.conflicts:
        dropped[conflict.group_version].append(f"{conflict.pointer}: {conflict.reason}")
    return MergedDocument(
        merged.document,
        MappingProxyType({key: MappingProxyType(names) for key, names in renamed.items()}),
        MappingProxyType({key: tuple(told) for key, told in dropped.items()}),
    )
