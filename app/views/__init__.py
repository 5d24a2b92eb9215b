"""The views, one module a resource. A view validates nothing and renders nothing: `app.endpoint` does both.

Views read through `app.store`, and never use MongoDB's client or the middleware.
"""

from app.views import aggregates, changes, discovery, docs, drivers, explorer, health, rankings, report, scores, trips

BLUEPRINTS = (
    drivers.bp,
    trips.bp,
    aggregates.bp,
    scores.bp,
    rankings.bp,
    report.bp,
    changes.bp,
    health.bp,
    docs.bp,
    discovery.guides_bp,
)
# Outside the API's path.
ROOT_BLUEPRINTS = (explorer.bp, discovery.bp)
