"""What brings data in and takes it out: the import, `follow`, the export, and the removal of drivers and old trips.

`follow` applies what other programs write to the sources. The read models are built and deleted in `materialize`.
"""
