"""Rules of custom resources (``x-kubernetes-validations``, CEL): where they stand, types, values, evaluation.

It knows the report and the values of ``validation``. The language is in ``cel``, which knows no rules.
"""
