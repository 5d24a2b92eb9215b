"""The endpoints, a module a resource."""

from app.views import aggregates, docs, drivers, health, report, trips

BLUEPRINTS = (drivers.bp, trips.bp, aggregates.bp, report.bp, health.bp, docs.bp)
