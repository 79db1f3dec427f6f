"""Costs of expressions: estimated before, metered while they run."""
