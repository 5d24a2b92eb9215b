"""MongoDB for the commands: the store opened and prepared, the embedded mongod, and a store in memory without one.

What the collections hold is in `app.store` and `scripts.materialize`.
"""
