"""RBAC as an apiserver does it: what ClusterRoles grant to whom, and what of it was used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
EVERYBODY = "system:authenticated"

DISCOVERY = {
    "nonResourceURLs": [
        *("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"),
        *("/healthz", "/livez", "/readyz"),
    ],
    "verbs": ["get"],
}
"""The rule of system:discovery, which a cluster gives to every authenticated user."""


@dataclass(frozen=True, slots=True)
class Account:
    """Whose a token is."""

    name: str
    groups: tuple[str, ...] = (EVERYBODY,)

    @property
    def subjects(self) -> set[str]:
        return {f"User {self.name}", *(f"Group {group}" for group in self.groups)}


def service_account(namespace: str, name: str) -> Account:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", EVERYBODY)
    return Account(f"system:serviceaccount:{namespace}:{name}", groups)


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on one thing: "group/resource", or a path, which may end with "*"."""

    verb: str
    what: str

    def covers(self, asked: Right) -> bool:
        if self.what.startswith("/") and self.what.endswith("*"):
            return self.verb == asked.verb and asked.what.startswith(self.what[:-1])
        return self == asked

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"


def rights(rule: Mapping[str, Any]) -> list[Right]:
    """One by one, so that each can be seen to be used."""
    resources = [
        f"{group}/{item}" for group in rule.get("apiGroups", ()) for item in rule.get("resources", ())
    ]
    return [
        Right(verb, what) for verb in rule["verbs"] for what in (*resources, *rule.get("nonResourceURLs", ()))
    ]


def asked_right(method: str, target: str) -> Right:
    """What a request wants, as an apiserver reads it: below a group-version it is a resource."""
    split = urlsplit(target)
    parts = split.path.strip("/").split("/")
    if parts[0] != "apis" or len(parts) < 4:
        return Right("get" if method in ("GET", "HEAD") else VERBS[method], split.path)
    group, below = parts[1], parts[3:]
    if below[0] == "namespaces" and len(below) > 2:
        below = below[2:]
    is_watch = parse_qs(split.query).get("watch", [""])[0] in ("1", "true")
    reads = "get" if len(below) > 1 else "watch" if is_watch else "list"
    return Right(VERBS.get(method, reads), f"{group}/{'/'.join([below[0], *below[2:]])}")


@dataclass
class Access:
    """Who may what. ``used`` and ``refused``: what callers did, by user name."""

    used: dict[str, set[Right]] = field(default_factory=dict)
    refused: list[tuple[str, Right]] = field(default_factory=list)
    _granted: dict[str, set[Right]] = field(default_factory=dict)

    def grant(self, subject: str, *rules: Mapping[str, Any]) -> None:
        """``subject``: "User NAME" or "Group NAME"."""
        self._granted.setdefault(subject, set()).update(right for rule in rules for right in rights(rule))

    def bind(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Take over the ClusterRoles that are bound, and nothing of the others."""
        objects = list(objects)
        roles = {item["metadata"]["name"]: item for item in objects if item["kind"] == "ClusterRole"}
        for binding in objects:
            if binding["kind"] == "ClusterRoleBinding":
                for subject in binding["subjects"]:
                    self.grant(_subject(subject), *roles[binding["roleRef"]["name"]]["rules"])

    def granted(self, account: Account) -> set[Right]:
        return {right for subject in account.subjects for right in self._granted.get(subject, ())}

    def allows(self, account: Account, asked: Right) -> bool:
        return any(right.covers(asked) for right in self.granted(account))

    def enforce(self, account: Account, asked: Right) -> bool:
        covering = {right for right in self.granted(account) if right.covers(asked)}
        self.used.setdefault(account.name, set()).update(covering)
        if not covering:
            self.refused.append((account.name, asked))
        return bool(covering)


def _subject(subject: Mapping[str, str]) -> str:
    if subject["kind"] == "ServiceAccount":
        return f"User {service_account(subject['namespace'], subject['name']).name}"
    return f"{subject['kind']} {subject['name']}"
