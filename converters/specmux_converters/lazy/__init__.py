"""What is made when it is first needed. Pure."""
