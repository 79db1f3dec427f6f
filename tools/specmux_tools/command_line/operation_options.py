"""The options of ``specmux validate`` that name the request its objects are judged as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from specmux_converters.counted_nouns import list_first
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.inputs.validated_objects import (
    Manifest,
    ObjectPatch,
    ObjectVerdict,
    ValidatedObject,
    manifest_files,
    manifests_in,
    object_of,
    patch_bytes,
    read_stored,
)
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.input import Input
from specmux_tools.sources.options import SourceOptions, bundle_options
from specmux_tools.validation.requests import PatchType
from specmux_tools.validation.stored_objects import StoredObjects

OPERATIONS: Final = ("create", "update")
PATCH_TYPES: Final = {
    "json": PatchType.JSON,
    "merge": PatchType.MERGE,
    "strategic": PatchType.STRATEGIC,
    "apply": PatchType.APPLY,
}
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class OperationOptions:
    old: str | None = None
    """A file, a folder, or ``git:REV:PATH``."""
    operation: str | None = None
    old_from_cluster: bool = False
    patch: str | None = None
    """A file; ``-`` is standard input."""
    patch_type: str | None = None

    @property
    def applies(self) -> bool:
        return self.patch_type == "apply"

    def manifests(self, files: Sequence[Input], *, skips_tools_by_name: bool) -> list[Manifest]:
        """The documents that are validated: of an apply, those of the patch. Raises SourceError."""
        given = manifest_files([self.patch]) if self.applies and self.patch else files
        return manifests_in(given, skips_tools_by_name=skips_tools_by_name)

    def read_stored_objects(self, files: Sequence[Input]) -> StoredObjects | None:
        """The objects that are updated; of an apply, those of ``files``. Raises SourceError."""
        if self.applies:
            return read_stored(files, ", ".join(each.name for each in files)) if files else None
        if self.old is None:
            return None
        return read_stored(manifest_files([self.old]), self.old, are_required=self.operation == "update")

    def stored_in_cluster(
        self, manifests: Sequence[Manifest], documents: DocumentSet, source: SourceOptions
    ) -> StoredObjects | None:
        """Raises SourceError."""
        if not self.old_from_cluster:
            return None
        from specmux_tools.sources.remote.cluster_objects import stored_in_cluster  # which imports what asks

        values = [value for item in manifests if (value := object_of(item)) is not None]
        return stored_in_cluster(values, documents, source, are_required=self.operation == "update")

    def read_patch(self) -> ObjectPatch | None:
        """Raises SourceError."""
        if self.patch is None or self.patch_type is None:
            return None
        return ObjectPatch(PATCH_TYPES[self.patch_type], b"" if self.applies else patch_bytes(self.patch))


def _check_operation(asked: OperationOptions, others: Mapping[str, Any]) -> OperationOptions:
    """Raises click.UsageError for options that do not go together."""
    if (asked.patch is None) != (asked.patch_type is None):
        raise click.UsageError("--patch and --patch-type go together")
    has_old = asked.old is not None or asked.old_from_cluster
    if asked.old is not None and asked.old_from_cluster:
        raise click.UsageError("--old and --old-from-cluster name different objects; give one of them")
    if asked.patch is not None and (has_old or asked.operation is not None):
        raise click.UsageError("--patch patches the objects in PATH: omit --old and --operation")
    if asked.operation == "update" and not has_old:
        raise click.UsageError("--operation update needs the stored objects: --old OLD, --old-from-cluster")
    if asked.operation == "create" and has_old:
        raise click.UsageError("--old is for updates: omit --operation create")
    if not others["paths"] and not asked.applies:
        raise click.UsageError("Missing argument '[PATH…|-]'.")
    return asked


_OPTIONS: Final = (
    click.option(
        "--old", metavar="OLD",
        help="The stored objects that the manifests update: a file, a folder, or git:REV:PATH.",
    ),
    click.option(
        "--old-from-cluster", is_flag=True,
        help="The stored objects are those of the server that the documents come from.",
    ),
    click.option(
        "--operation", type=click.Choice(OPERATIONS),
        help="With update, each object must have a stored one.  [default: update for stored ones]",
    ),
    click.option("--patch", metavar="FILE", help="Validate this patch of the objects in PATH: JSON or YAML."),
    click.option(
        "--patch-type", type=click.Choice(tuple(PATCH_TYPES)),
        help="What --patch is; with apply, its objects are applied to those of PATH, which may be left out.",
    ),
)  # fmt: skip


operation_options: Final = bundle_options("operation", OperationOptions, *_OPTIONS, check=_check_operation)
"""Adds the options; the command gets them as ``operation: OperationOptions``."""


def unmatched_hints(stored: StoredObjects, checked: Sequence[ValidatedObject]) -> Iterator[str]:
    """Sentences about what was not compared: objects that are new, and stored ones that no manifest has."""
    judged = [each for each in checked if each.outcome is not ObjectVerdict.NO_OBJECT and each.key.kind]
    created = [str(each.key) for each in judged if not (each.report.is_update or each.report.is_list)]
    if created and not stored.are_required:
        shown = list_first(sorted(created), _SHOWN)
        yield f"{_count_objects(created)} not in {stored.place}, checked as created: {shown}"
    named = {stored.key_for_name(each.key) for each in judged}
    gone = [str(key) for key in stored if key not in named and key.kind]
    if gone:
        shown = list_first(sorted(gone), _SHOWN)
        yield f"{_count_objects(gone)} in {stored.place} alone, not checked: {shown}"


def _count_objects(names: list[str]) -> str:
    return f"{len(names)} {'object is' if len(names) == 1 else 'objects are'}"
