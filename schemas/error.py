"""The one body of every error."""

from marshmallow import Schema, fields

from schemas.fields import Text, Whole


class ErrorBody(Schema):
    """An error; `errors`, the reasons for each parameter, is there for ValidationError alone."""

    message = Text(required=True)
    error = Text(required=True)
    request_id = Text(required=True)
    errors = fields.Dict(keys=fields.String(), values=fields.List(fields.String()))


class Problem(ErrorBody):
    """The same as RFC 9457 has it."""

    type = Text(required=True)
    title = Text(required=True)
    status = Whole(required=True)
    detail = Text(required=True)

    class Meta:
        """Members in the order of the RFC, then those of the plain body."""

        fields = ("type", "title", "status", "detail", "message", "error", "request_id", "errors")
