"""Files of swagger-ui-dist, in the folder ``files`` of this package."""
