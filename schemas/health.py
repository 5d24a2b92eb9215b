"""The responses of the health checks."""

from marshmallow import Schema
from marshmallow.validate import OneOf

from schemas.error import ErrorBody, ErrorName
from schemas.fields import Text


class Health(Schema):
    """The service is up."""

    status = Text("Always `ok`.", example="ok", validate=OneOf(["ok"]))


class Unhealthy(ErrorBody):
    """The database does not respond."""

    status = Text("Always `unavailable`.", example="unavailable", validate=OneOf(["unavailable"]))
    message = Text("What is wrong.", example="The database does not respond. Try again in a few seconds.")
    error = ErrorName("Always `StoreUnavailable`.", example="StoreUnavailable", validate=OneOf(["StoreUnavailable"]))

    class Meta:
        """The status, then the fields of every error."""

        fields = ("status", "message", "error", "request_id")
