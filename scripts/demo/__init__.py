"""The demonstration fleet: how its drivers and trips are generated, and the command that loads it.

It is written like any import.
"""
