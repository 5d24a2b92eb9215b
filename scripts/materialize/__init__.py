"""Read models: one function builds each kind of document from its sources, and `update` keeps them in line.

Whatever changes drivers or trips runs in `write`, and calls `update` for what it touched. Nothing here reads files or
talks to clients.
"""
