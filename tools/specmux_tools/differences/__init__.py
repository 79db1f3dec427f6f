"""Compare what two sides serve: what changed, for whom, and how severely.

``ServedSide`` is one side: documents (``add_document``) and CustomResourceDefinitions (``add_manifests``).
``compare`` finds the differing places; ``reports`` turns them into changes and writes those. Depends on
kinds, references and resources; parses manifests as ``converters.crd`` does.
"""

from specmux_tools.differences.comparison import Comparison, compare
from specmux_tools.differences.manifests import add_manifests
from specmux_tools.differences.policy import Policy, read_policy
from specmux_tools.differences.rules import ChangeSeverity
from specmux_tools.differences.served import Basis, ServedSide, add_document

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
