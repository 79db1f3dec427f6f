"""Kubernetes' own kinds as a source: the documents of a release that the package has. Asks nobody.

The one way in for words and options that name a release, and for commands that no source was named to.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from specmux_aggregator.built_in_releases import PublishedDocuments, built_in_releases
from specmux_aggregator.console import write_note
from specmux_converters.document import Document, parse
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.order import discovery_rank
from specmux_converters.releases import RELEASES
from specmux_converters.resources import Resources
from specmux_converters.synthesis import resources_of
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.access import has_cluster
from specmux_tools.sources.options import KUBERNETES, SourceOptions, release_of, say_once
from specmux_tools.sources.source import LoadedDocuments


class ReleaseSource:
    """The documents of one release, each restored when it is asked for; with descriptions where the disk
    cache in ``directory`` has them as they were published."""

    def __init__(self, release: str, directory: Path | None = None) -> None:
        self.where = f"{KUBERNETES}{release}"
        self._release = release
        self._published = PublishedDocuments(release, directory)
        self._loaded: dict[tuple[GroupVersion, bool], Document] = {}
        self._described: dict[GroupVersion, Document] = {}

    @property
    def kept_as(self) -> tuple[str, str]:
        return self.where, "releases"

    def state(self) -> str:
        described = sorted(self._published.group_versions)
        return " ".join((*built_in_releases().source_of(self._release), *described))

    def refresh(self) -> ReleaseSource:
        return self

    def hashes(self) -> Mapping[GroupVersion, str]:
        source = " ".join(built_in_releases().source_of(self._release))
        described = self._published.group_versions
        return {
            key: f"{source} {key}{' described' if key in described else ''}" for key in self.group_versions()
        }

    def group_versions(self) -> tuple[GroupVersion, ...]:
        return built_in_releases().group_versions(self._release)

    def load(
        self, group_versions: Collection[GroupVersion] | None = None, *, schemas_only: bool = False
    ) -> LoadedDocuments:
        known = self.group_versions()
        wanted = [key for key in known if group_versions is None or key in group_versions]
        bodies = self._published.bodies([key for key in wanted if key not in self._described])
        self._described |= {key: parse(body) for key, body in bodies.items()}
        return LoadedDocuments(
            DocumentSet(
                {key: self._described.get(key) or self._document(key, schemas_only) for key in wanted}
            )
        )

    def resources(self) -> Mapping[GroupVersion, Resources]:
        """In the order of an apiserver's discovery."""
        keys = [key for key in self.group_versions() if split(key) is not None]
        return {
            key: resources_of(built_in_releases().outline(self._release, key), key)
            for key in sorted(keys, key=discovery_rank)
        }

    def _document(self, key: GroupVersion, schemas_only: bool) -> Document:
        found = self._loaded.get((key, False)) or self._loaded.get((key, schemas_only))
        if found is None:
            found = built_in_releases().document(self._release, key, schemas_only=schemas_only)
            self._loaded[key, schemas_only] = found
        return found


def with_default(options: SourceOptions) -> SourceOptions:
    """The options; where they name nothing and there is no cluster, the newest release, with a line to say
    so, once."""
    if options.names_one or has_cluster(os.environ):
        return options
    _tell_default(RELEASES[-1], "--release")
    return replace(options, kubernetes=RELEASES[-1])


def predecessor(word: str, options: SourceOptions) -> str:
    """The default of --from for an upgrade to the release that ``word`` names: the release before, as a
    word; "" for the source of the options. Raises NoSource."""
    if options.names_one or has_cluster(os.environ) or not word.startswith(KUBERNETES):
        return ""
    release = RELEASES[max(RELEASES.index(release_of(word)) - 1, 0)]
    _tell_default(release, "--from")
    return f"{KUBERNETES}{release}"


def _tell_default(release: str, option: str) -> None:
    say_once(write_note, f"no cluster: Kubernetes {release}'s own kinds are used ({option} chooses another)")
