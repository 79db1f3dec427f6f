"""Documents and objects of servers, asked for with what options mean."""
