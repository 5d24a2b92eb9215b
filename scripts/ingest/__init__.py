"""The import: reads NDJSON files, validates each line against the schemas, and writes the documents in batches.

The read models are built in `materialize`.
"""
