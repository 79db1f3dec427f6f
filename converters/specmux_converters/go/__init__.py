"""Go as apiservers have it: scalars of YAML, text, regular expressions (RE2), classes of Unicode."""
