"""The views, one module a resource.

A view of the API gets validated parameters, and returns what `app.store` read or a response: `app.endpoint` does the
rest. Pages and files that are the same for everyone are only marked `public`. Views never use MongoDB's client or the
middleware.
"""

from app.views import (
    aggregates,
    changes,
    discovery,
    docs,
    drivers,
    events,
    explorer,
    fleet,
    groups,
    health,
    rankings,
    report,
    scores,
    trips,
)

# In the order of the OpenAPI document.
API_VIEWS = (drivers, trips, events, aggregates, scores, rankings, report, changes, fleet, groups, health, docs)
ROOT_VIEWS = (explorer, discovery)
