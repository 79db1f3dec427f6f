"""Values of CEL, their types and arithmetic."""
