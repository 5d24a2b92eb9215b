"""The endpoints, a module a resource."""

from app.views import aggregates, docs, drivers, health, home, report, trips

BLUEPRINTS = (drivers.bp, trips.bp, aggregates.bp, report.bp, health.bp, docs.bp)
# Outside the API's path.
ROOT_BLUEPRINTS = (home.bp,)
