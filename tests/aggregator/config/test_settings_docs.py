"""docs/settings.md and docs/backends.md are complete, and the example is a configuration."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from specmux_aggregator.config.setting_fields import SettingField, setting_fields
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause
from specmux_cache.access.server_access import Credentials, ServerTLS

DOCS = Path(__file__).resolve().parents[3] / "docs"
NESTED = {"tls": ServerTLS, "credentials": Credentials}
INLINE = {
    *(f"tls.{name}" for name in ("ca_data", "cert_data", "key_data")),
    *(f"credentials.{name}" for name in ("token", "basic", "exec_plugin", "impersonation")),
}
NOT_CONFIGURED = {"found", *INLINE}
"""What only a cluster or a kubeconfig says of a backend."""


def rows(name: str) -> dict[str, list[str]]:
    """First cell, without its code marks, -> the cells after it."""
    lines = (DOCS / name).read_text().splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")
    ]
    return {first.strip("`"): rest for first, *rest in cells}


@pytest.mark.parametrize("field", setting_fields(), ids=lambda field: field.key)
def test_setting_is_documented_with_its_default(field: SettingField) -> None:
    default, meaning = rows("settings.md")[field.key]
    assert meaning == field.doc
    is_unset = default == "none" and field.default is None
    assert (None if is_unset else field.read(default)) == field.default


def test_every_key_of_a_backend_is_documented() -> None:
    keys = {item.name for item in fields(Backend)} - NESTED.keys()
    keys |= {f"{group}.{item.name}" for group, kind in NESTED.items() for item in fields(kind)}
    assert keys - NOT_CONFIGURED <= rows("settings.md").keys()


def test_nothing_is_documented_that_does_not_exist() -> None:
    settings = {field.key for field in setting_fields()}
    backend = {item.name for item in fields(Backend)} | {
        f"{group}.{item.name}" for group, kind in NESTED.items() for item in fields(kind)
    }
    backend -= NOT_CONFIGURED
    examples = {key for key in rows("settings.md") if ":" in key}
    assert rows("settings.md").keys() == settings | (backend - NESTED.keys()) | examples


def test_every_cause_is_documented() -> None:
    assert list(rows("backends.md"))[-len(Cause) :] == [cause.value for cause in Cause]


def test_example_is_a_configuration() -> None:
    settings = ConfigSource(file=DOCS / "specmux.example.yaml").read()
    assert [backend.name for backend in settings.backends] == [
        "batch",
        "metrics",
        "legacy",
        "files",
        "definitions",
        "builtin",
    ]


def test_example_has_every_group() -> None:
    lines = (DOCS / "specmux.example.yaml").read_text().splitlines()
    groups = {field.key.partition(".")[0] for field in setting_fields()}
    assert {line.partition(":")[0] for line in lines if line[:1].isalpha()} == groups | {"backends"}
