"""Reports: content from the read models, the page with its charts, the CSV file, and the commands that build them.

The service returns the stored files, with `app.store.reports`.
"""
