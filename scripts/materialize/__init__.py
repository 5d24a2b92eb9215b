"""From sources to read models. `read_models` has the only functions that write them.

`write_sources` changes drivers or trips in a transaction, and calls `materialize` for what it changed, in the same one.
`rebuild_and_verify` builds the same documents of a whole fleet, part after part, to write or to compare.
`fleet_settings` calls `materialize` for what another setting of the fleet changes. Reading input, deciding what to
change and reporting results is the task of the commands.
"""
