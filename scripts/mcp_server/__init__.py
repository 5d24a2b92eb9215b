"""The MCP server: tools with which an AI agent answers questions about a fleet, over stdio.

It calls a running service over HTTP with the caller's key, so it knows neither the store nor the application.
"""
