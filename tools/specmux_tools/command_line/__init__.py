"""Options and reports that several commands of the tools share."""
