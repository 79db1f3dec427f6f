"""What a text is that is no value: of a setting, of an option, of a kubeconfig's member."""

from __future__ import annotations


class BadValue(ValueError):
    """A text is no value of its setting; the message says what is wanted."""
