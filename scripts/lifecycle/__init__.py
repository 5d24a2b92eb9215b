"""The commands that export, erase and prune what is stored, and that list, set and erase whole fleets.

What loads drivers and trips, or follows their changes, stands in `ingest`.
"""
