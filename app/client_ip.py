"""Where a request comes from."""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# What a network hands to one customer; whoever has it may come from any address of it.
IPV6_PREFIX_BITS = 64


def get_client_ip(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """Return the client that a request came from: an IPv4 address, or the /64 of an IPv6 one.

    `peer` is the address that connected, empty on a Unix socket; `forwarded_for` is X-Forwarded-For, the nearest hop
    last, each hop told by the one that it came to. It is believed as far as trusted proxies tell it; who can open the
    Unix socket is one.
    """
    client = _read(peer)
    for hop in reversed(forwarded_for.split(",")):
        if client is not None and not any(client in network for network in trusted):
            break
        told = _read(hop)
        if told is None:
            break
        client = told
    if client is None or client.version == 4:
        return str(client or "")
    return str(ipaddress.ip_network((client, IPV6_PREFIX_BITS), strict=False))


def _read(text: str) -> Address | None:
    """Return an address, which may come with a port, or None where it is none."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # How a socket for both kinds names IPv4.
    return getattr(address, "ipv4_mapped", None) or address
