"""The body of every error, as plain JSON and as RFC 9457, and the responses of the health checks."""

from marshmallow import Schema, fields

from schemas.fields import EXAMPLE_REQUEST_ID, Choice, Int64, Text, field_metadata


class ErrorName(Text):
    """The name of an error."""

    component = "ErrorName"


class ErrorBody(Schema):
    """An error. Read `error` to tell errors apart, and `message` to learn what to change."""

    message = Text("What is wrong, and how to fix it.")
    error: Text = ErrorName("Name of the error.")
    request_id = Text("Identifier of the request. Quote it when you report a problem.", example=EXAMPLE_REQUEST_ID)
    errors = fields.Dict(
        keys=fields.String(),
        values=fields.List(fields.String()),
        metadata=field_metadata("Only with ValidationError: the reasons why each parameter is invalid."),
    )


class Problem(ErrorBody):
    """An error as RFC 9457 defines it, followed by the fields of the plain body."""

    type = Text("URL of a page that describes the cause and the remedy of the error.")
    title = Text("Reason phrase of the status.")
    status = Int64("Status code.", low=400, high=599)
    detail = Text("What is wrong, and how to fix it: the same text as `message`.")

    class Meta:
        """The fields of the RFC in its order, then those of the plain body."""

        fields = ("type", "title", "status", "detail", "message", "error", "request_id", "errors")


class Health(Schema):
    """The service is up."""

    status = Choice("Always `ok`.", choices=["ok"], example="ok")


class Unhealthy(ErrorBody):
    """The database does not respond."""

    status = Choice("Always `unavailable`.", choices=["unavailable"], example="unavailable")
    message = Text("What is wrong.", example="The database does not respond. Try again in a few seconds.")
    error = Choice("Always `StoreUnavailable`.", choices=["StoreUnavailable"], example="StoreUnavailable")

    class Meta:
        """The status, then the fields of every error."""

        fields = ("status", "message", "error", "request_id")
