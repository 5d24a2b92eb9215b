"""The operator's commands: all that writes to the store."""
