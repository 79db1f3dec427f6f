"""The values that flow one way: Backend → Observation → Entry → Snapshot. All are frozen.

Every package may import them; they import only the errors.
"""
