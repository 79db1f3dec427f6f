"""Convert CustomResourceDefinitions to the OpenAPI v3 documents that an apiserver publishes for them.

The builder is imported on demand: readers of published documents need only a few tables. Depends on
documents, parts and text comparison; on no codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names

if TYPE_CHECKING:  # at run time __getattr__ imports them
    from specmux_converters.crd.documents import CRDBuild, build
    from specmux_converters.crd.manifest import Problem
    from specmux_converters.crd.templates import AS_DEFINED, BUNDLED, Templates, templates_for, templates_of
    from specmux_converters.crd.version_documents import CRDMemo

__all__ = [
    "AS_DEFINED",
    "BUNDLED",
    "CRDBuild",
    "CRDMemo",
    "Problem",
    "Templates",
    "build",
    "templates_for",
    "templates_of",
]

_MODULES = {
    "templates": "BUNDLED AS_DEFINED Templates templates_for templates_of",
    "documents": "CRDBuild build",
    "version_documents": "CRDMemo",
    "manifest": "Problem",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
