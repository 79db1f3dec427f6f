"""A demonstration on loopback: real HTTP backends with documents of our own, and the aggregator in front.

It knows the model; the command ``demo`` runs it.
"""
