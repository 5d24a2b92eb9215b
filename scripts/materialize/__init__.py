"""Read models: one function builds each kind of document from its sources, whether import or rebuild calls it.

Code that changes drivers or trips runs in `update.run_transaction` and calls `update.update_read_models` for the days
and drivers that it changed. Reading input files and reporting results is the task of the commands. This package prints
only that a transaction waits for another command.
"""
