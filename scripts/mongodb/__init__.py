"""MongoDB for the commands: opening and preparing the store, the embedded `mongod`, and the store in memory.

The reads of the collections are in `app.store`, the writes in `materialize` and the commands.
"""
