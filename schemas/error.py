"""The one body of every error."""

from marshmallow import Schema, fields

from schemas.fields import EXAMPLE_REQUEST_ID, Int64, Text, field_metadata


class ErrorName(Text):
    """The name of a kind of error."""


class ErrorBody(Schema):
    """An error."""

    message = Text("What is wrong, and how to mend it.", required=True)
    error = ErrorName("ErrorName of the error.", required=True)
    request_id = Text(
        "Identifier of the request, to name when reporting it.",
        example=EXAMPLE_REQUEST_ID,
        required=True,
    )
    errors = fields.Dict(
        keys=fields.String(),
        values=fields.List(fields.String()),
        metadata=field_metadata("With ValidationError alone: what is wrong with each parameter."),
    )


class Problem(ErrorBody):
    """The same as RFC 9457 has it."""

    type = Text("Always `about:blank`: `error` tells the kind.", required=True)
    title = Text("The status in words.", required=True)
    status = Int64("The status.", low=400, high=599, required=True)
    detail = Text("The message.", required=True)

    class Meta:
        """Members in the order of the RFC, then those of the plain body."""

        fields = ("type", "title", "status", "detail", "message", "error", "request_id", "errors")
