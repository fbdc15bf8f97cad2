"""Assets: what produces data, and stashes the messages about it."""
