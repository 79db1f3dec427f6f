"""How passing resources on is switched on in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmux_aggregator.config.settings import ProxySettings
from specmux_aggregator.config.source import ConfigSource
from specmux_aggregator.errors import InvalidConfig


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("proxy: resources", ProxySettings(resources=True)),
        ("proxy: {resources: true, answer_timeout: 5}", ProxySettings(resources=True, answer_timeout=5.0)),
        ("proxy: {answer_timeout: 5}", ProxySettings(answer_timeout=5.0)),
        ("proxy:", ProxySettings()),
        ("{}", ProxySettings()),
    ],
)
def test_switch_has_a_short_form(text: str, proxy: ProxySettings, tmp_path: Path) -> None:
    file = tmp_path / "specmux.yaml"
    file.write_text(text)
    assert ConfigSource(file=file).read().proxy == proxy


@pytest.mark.parametrize(
    "text", ["proxy: everything", "proxy: answer_timeout", "proxy: true", "proxy: [resources]"]
)
def test_no_other_word_switches_anything_on(text: str, tmp_path: Path) -> None:
    file = tmp_path / "specmux.yaml"
    file.write_text(text)
    with pytest.raises(InvalidConfig, match="proxy"):
        ConfigSource(file=file).read()
