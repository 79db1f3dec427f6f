"""Values and names made when first needed. Pure."""
