"""Two schemas compared, keyword by keyword."""
