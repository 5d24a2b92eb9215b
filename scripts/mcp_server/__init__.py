"""The MCP server: tools with which an AI agent answers questions about a fleet, over stdio or HTTP.

It calls a running service over HTTP with the caller's key. So it does not know the store, and of the application and
the schemas only rules and constants.
"""
