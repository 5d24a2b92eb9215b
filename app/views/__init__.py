"""The endpoints, a module a resource."""

from app.views import aggregates, docs, drivers, health, trips

BLUEPRINTS = (drivers.bp, trips.bp, aggregates.bp, health.bp, docs.bp)
