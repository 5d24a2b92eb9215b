"""Read models: one function builds each kind of document from its sources, whether import or rebuild calls it.

Code that changes drivers or trips runs in `update.run_transaction` and calls `update.update_read_models` for the days
and drivers that it changed. Reading input files and printing to the terminal is the task of the commands, not of this
package.
"""
