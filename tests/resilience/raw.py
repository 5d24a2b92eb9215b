"""Bytes sent to the service as they are."""

import re
import socket

from tests.resilience.wsgi import Response


class Connection:
    """A connection that is opened when it is needed, and again when the server has closed it."""

    def __init__(self, address):
        self._address, self._socket = address, None

    def send(self, request):
        """Send bytes; return the Response, or None if the connection ends or times out."""
        self._socket = self._socket or socket.create_connection(self._address, timeout=30)
        try:
            self._socket.sendall(request)
            response = self._receive(has_body=not request.startswith(b"HEAD "))
        except OSError:
            response = None
        if response is None or (response.header("connection") or "").lower() == "close":
            self.close()
        return response

    def close(self):
        if self._socket:
            self._socket.close()
        self._socket = None

    def _receive(self, has_body):
        content = b""
        while b"\r\n\r\n" not in content:
            content += self._some()
        top, _, body = content.decode("latin-1").partition("\r\n\r\n")
        first, *lines = top.split("\r\n")
        headers = [(name.lower(), value) for name, value in (re.split(": *", line, maxsplit=1) for line in lines)]
        length = int(dict(headers).get("content-length", 0)) if has_body else 0
        while len(body) < length:
            body += self._some().decode("latin-1")
        return Response(int(first[9:12]), headers, body[:length].encode("latin-1"))

    def _some(self):
        part = self._socket.recv(65_536)
        if not part:
            raise ConnectionResetError
        return part
