"""From sources to read models. `read_models` has the only functions that write them.

A command changes drivers or trips in `transactions.run_transaction` and calls `materialize` for what it changed, in the
same transaction. `rebuild` runs the steps of `materialize` over a whole fleet, to write or to compare. Reading input,
deciding what to change and reporting results is the task of the commands.
"""
