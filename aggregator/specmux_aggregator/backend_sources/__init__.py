"""Where documents come from: one Origin per Backend, all behind one small interface.

Depends on upstream, jobs and the model; knows nothing of what is published.
"""
