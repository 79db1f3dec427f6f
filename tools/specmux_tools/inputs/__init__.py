"""Inputs of validate, diff and upgrade: manifests, the two sides of a comparison, and their lines."""
