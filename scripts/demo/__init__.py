"""The demonstration fleet: the generator of its drivers and trips, and the command that loads it.

`load` writes it with the functions of an import, from `materialize`. Nothing here is needed in production.
"""
