"""The commands that export, erase and prune what is stored, that set groups, and that list, set and erase fleets.

What loads drivers and trips, or follows their changes, stands in `ingest`.
"""
