"""The values that flow one way: Backend → Observation → Entry → Snapshot. All are frozen.

Every room may know them; they know none but the errors.
"""
