"""A room of the tests: it leads a count."""
