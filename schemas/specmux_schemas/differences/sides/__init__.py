"""What each side of a comparison serves."""
