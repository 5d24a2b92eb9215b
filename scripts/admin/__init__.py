"""Commands for operators: API keys, backup and restore, read models checked or built again, the OpenAPI document.

Commands that bring data in are in `ingest`, those that build reports in `reports`.
"""
