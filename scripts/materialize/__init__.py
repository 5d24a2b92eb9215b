"""From sources to read models: `read_models.materialize` is the only writer of read models.

A command changes drivers or trips in `transactions.run_transaction` and calls `materialize` for what it changed, in the
same transaction. Reading input, deciding what to change and reporting results is the task of the commands.
"""
