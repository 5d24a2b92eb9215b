"""MongoDB for the commands: opening the store, its collections with indexes and validators, transactions, `mongod`.

It stands below all commands. The reads of the service are in `app.store`, and what is written in `materialize`.
"""
