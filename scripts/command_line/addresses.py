"""Addresses on which commands serve, ADDRESS:PORT."""

import contextlib
import errno
import socket
from collections.abc import Iterator

import click

# Connections that wait to be accepted.
BACKLOG = 2_048


def split_address(bind: str) -> tuple[str, int]:
    """Return the host, an IPv6 address without its brackets, and the port."""
    host, _, port = bind.rpartition(":")
    return host.strip("[]"), int(port)


def get_local_url(bind: str) -> str:
    """Return the URL of an address on this host: a wildcard address becomes the loopback address."""
    host = bind.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104
    return f"http://{host}"


def listen(setting: str, bind: str) -> socket.socket:
    """Return a socket that listens on an address. Raises click.ClickException."""
    host, port = split_address(bind)
    with explaining(setting, bind):
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    # Its connections inherit this. asyncio would set it only if the socket had been made for TCP by name. Without it, a
    # response on a connection that was used before waits for 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@contextlib.contextmanager
def explaining(setting: str, bind: str) -> Iterator[None]:
    """Raise click.ClickException, which names the setting to change, for an address that cannot be served on."""
    try:
        yield
    except OSError as error:
        # Python appends the address to the reason of some errors.
        reason = (error.strerror or str(error)).partition(" (while ")[0]
        remedy = "Stop the program that uses it, or set" if error.errno == errno.EADDRINUSE else "Set"
        raise click.ClickException(
            f"Cannot serve on {bind}: {reason}. {remedy} {setting} to another ADDRESS:PORT."
        ) from None
