"""Names and metadata of objects, and the words an apiserver has for what is wrong with them."""
