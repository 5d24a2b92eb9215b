"""What the commands share: options, output, progress, files with personal data, addresses and signals.

Nothing here knows the store. The commands themselves stand in the other folders, and `cli.py` lists them.
"""
