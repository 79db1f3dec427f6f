"""Rules of custom resources (``x-kubernetes-validations``, CEL): where they stand, evaluating, saying.

It knows the report and the values of ``validation``; of the library that evaluates, ``evaluation`` alone.
"""
