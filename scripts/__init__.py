"""The operator's commands. They are the only part of this project that writes to the store."""
