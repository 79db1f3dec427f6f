"""Parse YAML into documents, the usual form of CRDs and Swagger files."""

from __future__ import annotations

from specmux_converters.document import DEFAULT_LIMITS, Document, Limits
from specmux_converters.errors import InvalidDocument
from specmux_converters.go.yaml_dialects import CORE, KUBERNETES
from specmux_converters.go.yaml_reader import Duplicates, read_all
from specmux_converters.losses import Loss


def parse_yaml_stream(
    data: bytes,
    *,
    limits: Limits = DEFAULT_LIMITS,
    is_manifest: bool = False,
    losses: list[Loss] | None = None,
) -> tuple[Document, ...]:
    """The non-empty documents in ``data``. Manifests are parsed as in Kubernetes, where the last of duplicate
    keys counts; others as YAML 1.2. Changes made by parsing are added to ``losses``.

    Raises as ``document.parse``. Aliased values are the same object at every place: treat them as read-only.
    """
    limits.check_bytes(data)
    dialect = KUBERNETES if is_manifest else CORE
    duplicates = Duplicates.REPORTED if is_manifest else Duplicates.REFUSED
    documents = []
    for parsed in read_all(data, dialect=dialect, duplicates=duplicates, limits=limits):
        if parsed.value is None:
            continue
        if not isinstance(parsed.value, dict):
            raise InvalidDocument("not a YAML mapping")
        documents.append(parsed.value)
        if losses is not None:
            losses += parsed.losses
    return tuple(documents)
