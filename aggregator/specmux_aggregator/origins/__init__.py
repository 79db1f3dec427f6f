"""Where documents come from: one Origin per Backend, all behind one small interface."""
