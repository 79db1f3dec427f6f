"""The Common Expression Language as apiservers speak it: syntax, types, libraries, cost, evaluation.

It knows no schema and no rule: who compiles an expression gives the types of its variables.
"""
