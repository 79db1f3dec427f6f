"""Rules of custom resources (``x-kubernetes-validations``, CEL): where they stand, evaluating, saying."""
