"""Compare what two sides serve: what changed, for whom, and how severely.

``ServedSide`` is one side: documents (``add_document``) and CustomResourceDefinitions (``add_manifests``).
``compare`` finds the differing places; ``reports`` turns them into changes and writes those. Depends on
kinds, references and resources; parses manifests as ``converters.crd`` does.
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
