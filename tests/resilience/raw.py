"""Bytes sent as they are."""

import http.client
import io
import socket

from tests.resilience.load import TIMEOUT_SECONDS, Response


def exchange(address, request, half_close=False):
    """Send bytes on a connection of their own; return all that comes back, or b"" if the connection breaks.

    The server closes the connection if the request says so, or else once it sees that the client has: `half_close`.
    """
    with socket.create_connection(address, timeout=TIMEOUT_SECONDS) as client:
        try:
            client.sendall(request)
            if half_close:
                client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65_536), b""))
        except TimeoutError:
            raise
        except OSError:
            return b""


def first_response(content):
    """Return the first Response of what came back, its headers in lower case, or None if there is none."""
    head, _, rest = content.partition(b"\r\n\r\n")
    line, _, headers = head.partition(b"\r\n")
    if not line:
        return None
    fields = http.client.parse_headers(io.BytesIO(headers + b"\r\n\r\n"))
    named = {name.lower(): value for name, value in fields.items()}
    return Response(int(line[9:12]), named, rest[: int(named.get("content-length", 0))])
