"""The shape of every request, response and stored document, each written once as a marshmallow schema.

Validation, rendering, field masks, the OpenAPI document and MongoDB's validators are derived from these schemas.
`query` reads the texts of parameters as the schemas declare them. Nothing here knows the database or Flask.
"""
