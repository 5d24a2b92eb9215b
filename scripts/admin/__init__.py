"""Commands for operators: API keys, backup and restore, rebuilding and verifying read models, the OpenAPI document.

The import is in `ingest`, the commands for reports are in `reports`.
"""
