"""The shape of every request, response and stored document, each written once as a marshmallow schema.

Validation, rendering, field masks, the OpenAPI document and MongoDB's validators are derived from these schemas.
Nothing here reads the database or handles a request.
"""
