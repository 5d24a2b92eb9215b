"""What brings data in and takes it out: the import, the export, and the removal of drivers and old trips.

The read models are built and deleted in `materialize`.
"""
