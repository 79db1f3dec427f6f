"""The CustomResourceDefinitions of one cluster, as far as a watch has shown them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

from specmux_aggregator.kubernetes.custom_resources import Definition, WatchedManifests, definitions
from specmux_aggregator.kubernetes.watch import WatchState
from specmux_aggregator.kubernetes.watch_events import Object
from specmux_aggregator.model.failure import Failure
from specmux_converters.crd import Templates
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion


class SeenDefinitions:
    """Read only when somebody looks. ``changed`` is told that ``manifests`` has news."""

    def __init__(self, changed: Callable[[], None], templates: Callable[[], Awaitable[Templates]]) -> None:
        self.manifests = WatchedManifests(templates)
        self._changed = changed
        self._taken: Mapping[str, Object] | None = None
        self._items: tuple[Definition, ...] = ()
        self._named: set[GroupVersion] = set()
        """Every group-version that one ever named."""
        self._failure: Failure | None = None
        self.withdrawn: frozenset[GroupVersion] = frozenset()
        """The group-versions that one named and none wants served now."""
        self.served: frozenset[GroupVersion] = frozenset()

    def take(self, objects: Mapping[str, Object]) -> None:
        """These are all there are now."""
        self._taken = objects

    def look(self, state: WatchState | None) -> bool:
        """What follows from how the watch is; None: there is none. Whether there are any to build documents
        of."""
        if state is None or state.phase.is_refusal:
            return False
        objects, self._taken = self._taken, None
        if objects is not None:
            self._items = definitions(objects)
            self._withdraw()
        if objects is not None or (state.failure is None and self._failure is not None):
            self.manifests.take(self._items)
            self._changed()
        elif state.failure is not None and state.failure != self._failure:
            self.manifests.fail(state.failure)
            self._changed()
        self._failure = state.failure
        return True

    def problems(self, elsewhere: frozenset[GroupVersion]) -> Iterator[str]:
        """What is wrong with them that no builder sees. ``elsewhere``: what their apiserver does not serve by
        them."""
        for item in self._items:
            if not item.is_established:
                yield f"CustomResourceDefinition {cut(item.name)}: not Established"
                continue
            for group_version in sorted(elsewhere.intersection(item.served)):
                yield f"CustomResourceDefinition {cut(item.name)}: {group_version} is served from elsewhere"

    def _withdraw(self) -> None:
        served = {key for item in self._items if item.is_established for key in item.served}
        self._named |= served.union(*(item.withdrawn for item in self._items))
        self.withdrawn = frozenset(self._named - served)
        self.served = frozenset(served)
