"""Where documents come from: one Origin per Backend, all behind one small interface.

It knows upstream, build and the model; nothing of what is published.
"""
