"""Benchmarks: ratios measured in one run, printed as a table or as JSON."""
