"""Bringing data in: NDJSON lines, checked against the schemas, and the import that writes them in batches.

What follows from the data is built by `scripts.materialize`.
"""
