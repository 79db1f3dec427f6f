"""The APIServices of one cluster as seen by a watch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from specmux_aggregator.kubernetes.api_services import APIService, noted, read_api_services, recall
from specmux_aggregator.kubernetes.cluster_backends import shadowed
from specmux_aggregator.kubernetes.watch import WatchPhase, WatchState
from specmux_aggregator.kubernetes.watch_events import Object
from specmux_converters.group_versions import GroupVersion

logger = logging.getLogger(__name__)


class SeenServices:
    """Evaluated only on ``look``. ``note`` receives the input of ``recall`` for the next start."""

    def __init__(self, note: Callable[[bytes], None]) -> None:
        self._note = note
        self._noted: bytes | None = None
        self._taken: Mapping[str, Object] | None = None
        self._read: Mapping[str, Object] | None = None
        self.items: tuple[APIService, ...] | None = None
        """None: unknown yet."""
        self.problems: tuple[str, ...] = ()
        self._named: frozenset[GroupVersion] = frozenset()
        """Every group-version that an APIService of an extension apiserver ever named."""
        self.withdrawn: frozenset[GroupVersion] = frozenset()
        """Those that none names any more. Not the apiserver's own: of several, one that has another release
        deletes the APIServices of all that it does not serve itself, while others serve it. Their roots say
        when the last has lost it."""

    def recall(self, before: bytes) -> None:
        """Start with the note of an earlier run."""
        self._noted = before
        self.items, _ = read_api_services(recall(before))

    def take(self, objects: Mapping[str, Object]) -> None:
        """Set the complete list of objects."""
        self._taken = objects

    def look(self, state: WatchState | None) -> None:
        """Evaluate the state of the watch; None: there is none."""
        if state is None or state.phase.is_refusal:
            # Parse them again once they are listed again, changed or not.
            self.items, self.problems, self._read = (), (), None
            self.withdrawn = frozenset()
        elif self._taken is not None and self._taken is not self._read:
            self._read = self._taken
            self.items, problems = read_api_services(self._taken.values())
            named = shadowed(self.items)
            self._named |= {item.group_version for item in self.items if item.service is not None}
            self.withdrawn = self._named - named
            note = noted(self._taken.values())
            if note != self._noted:
                self._noted = note
                self._note(note)
            for problem in problems:
                if problem not in self.problems:
                    logger.warning("%s", problem)
            self.problems = problems
        elif self.items is None and state.phase is not WatchPhase.PENDING:
            self.items = ()
