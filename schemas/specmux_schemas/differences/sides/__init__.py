"""The two sides of a comparison: what each of them serves."""
