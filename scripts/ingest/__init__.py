"""What brings data in: the import, `mirror`, and `follow`, which applies what other programs write to the sources.

What takes data out stands in `lifecycle`. The read models are built and deleted in `materialize`.
"""
