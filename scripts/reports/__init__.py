"""Building reports: figures from the read models, charts, the page and the CSV file.

The service only reads what is built here.
"""
