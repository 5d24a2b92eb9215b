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

BLUEPRINTS = (
    drivers.bp,
    trips.bp,
    events.bp,
    aggregates.bp,
    scores.bp,
    rankings.bp,
    report.bp,
    changes.bp,
    fleet.bp,
    groups.bp,
    health.bp,
    docs.bp,
)
# Outside the API's path.
ROOT_BLUEPRINTS = (explorer.bp, discovery.bp)
