"""Reports: figures from the read models, charts, the page, the CSV file, and the commands that build them.

The service returns the stored files, with `app.store.reports`.
"""
