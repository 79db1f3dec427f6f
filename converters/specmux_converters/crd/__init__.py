"""CustomResourceDefinitions to the OpenAPI v3 documents that an apiserver publishes for them.

What builds is imported when it is asked for: whoever reads published documents needs a few tables of it. It
knows documents, parts and what a text is compared by; no codec.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # at run time __getattr__ imports them
    from specmux_converters.crd.documents import CRDBuild, build
    from specmux_converters.crd.editions import CRDMemo
    from specmux_converters.crd.problems import Problem
    from specmux_converters.crd.templates import BUNDLED, WITH_UNIONS, Templates, templates_of

__all__ = [
    "BUNDLED",
    "WITH_UNIONS",
    "CRDBuild",
    "CRDMemo",
    "Problem",
    "Templates",
    "build",
    "templates_of",
]

_MODULES: Final = {
    "BUNDLED": "templates",
    "WITH_UNIONS": "templates",
    "CRDBuild": "documents",
    "CRDMemo": "editions",
    "Problem": "problems",
    "Templates": "templates",
    "build": "documents",
    "templates_of": "templates",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
