"""CustomResourceDefinitions to the OpenAPI v3 documents that an apiserver publishes for them."""

from specmux_converters.crd.documents import CRDBuild, build
from specmux_converters.crd.editions import CRDMemo
from specmux_converters.crd.problems import Problem
from specmux_converters.crd.templates import BUNDLED, Templates, templates_of

__all__ = ["BUNDLED", "CRDBuild", "CRDMemo", "Problem", "Templates", "build", "templates_of"]
