"""What changed between two sides that serve APIs, for whom, and how badly.

``ServedSide`` is one side: documents (``add_document``) and CustomResourceDefinitions (``add_manifests``).
``compare`` finds the places that differ; ``reports`` makes changes of them and writes those down.
It knows kinds, references and resources, and reads manifests as ``converters.crd`` does.
"""

from specmux_schemas.differences.comparison import Comparison
from specmux_schemas.differences.comparison import compare_served as compare
from specmux_schemas.differences.policy import Policy, read_policy
from specmux_schemas.differences.sides.document_contents import add_document
from specmux_schemas.differences.sides.manifests import add_manifests
from specmux_schemas.differences.sides.served import Basis, ServedSide
from specmux_schemas.differences.verdicts.impacts import ChangeSeverity

__all__ = [
    "Basis",
    "ChangeSeverity",
    "Comparison",
    "Policy",
    "ServedSide",
    "add_document",
    "add_manifests",
    "compare",
    "read_policy",
]
