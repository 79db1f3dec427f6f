"""Values decoded as Go types, and what each type takes."""
