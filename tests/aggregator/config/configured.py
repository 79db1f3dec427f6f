"""A configuration file read, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specmux_aggregator.config.setting_fields import SettingField, setting_fields
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.errors import InvalidConfig


def configured(tmp_path: Path, text: str, **source: Any) -> Settings:
    path = tmp_path / "specmux.yaml"
    path.write_text(text)
    return ConfigSource(file=path, **source).read()


def refused(tmp_path: Path, text: str, **source: Any) -> list[str]:
    """The lines of the complaint, without the folder."""
    with pytest.raises(InvalidConfig) as error:
        configured(tmp_path, text, **source)
    return [line.removeprefix(f"{tmp_path}/") for line in str(error.value).splitlines()]


def field_of(key: str) -> SettingField:
    (found,) = (field for field in setting_fields() if field.key == key)
    return found
