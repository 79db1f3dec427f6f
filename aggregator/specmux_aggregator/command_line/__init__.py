"""Parts of every command: common options, the list of commands, output formats and progress."""
