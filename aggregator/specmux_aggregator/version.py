"""The version: the one place it is written (the package, the image and the chart take it from here)."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.9.0"
