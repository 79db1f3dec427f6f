"""The encodings of an OpenAPI v3 document.

``document_forms`` has a row for each. Codecs depend on documents, limits and losses; they know nothing of a
document's meaning. Names are imported on demand: who needs one encoding does not load the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy.names import lazy_names

if TYPE_CHECKING:  # at run time __getattr__ imports them
    from specmux_converters.codecs.fragments import Fragments
    from specmux_converters.codecs.table import decode, encode, recognise

__all__ = ["Fragments", "decode", "encode", "recognise"]

_MODULES = {"table": "decode encode recognise", "fragments": "Fragments"}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
