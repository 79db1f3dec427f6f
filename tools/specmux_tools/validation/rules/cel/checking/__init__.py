"""Types of expressions, before there is a value."""
