"""The IP address of a client, also behind trusted proxies."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# A provider assigns at least a /64 to each customer, who may use any address in it.
IPV6_PREFIX_BITS = 64


def get_client_ip(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """Return the client of a request: an IPv4 address, or the /64 network of an IPv6 address.

    `peer` is the address of the connection, empty on a Unix socket. `forwarded_for` is the header X-Forwarded-For, to
    which each proxy appends the address from which it got the request. An entry counts only if a trusted proxy appended
    it. Whoever can open the Unix socket is trusted.
    """
    client = _parse(peer)
    for hop in reversed(forwarded_for.split(",")):
        if client is not None and not any(client in network for network in trusted):
            break
        address = _parse(hop)
        if address is None:
            break
        client = address
    if client is None or client.version == 4:
        return str(client or "")
    return str(ipaddress.ip_network((client, IPV6_PREFIX_BITS), strict=False))


def _parse(text: str) -> Address | None:
    """Return an address, which may have a port after it, or None if the text is not an address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A socket that accepts IPv6 and IPv4 reports an IPv4 address as ::ffff:a.b.c.d.
    return getattr(address, "ipv4_mapped", None) or address
