"""app/client_ip.py: where a request comes from."""

import ipaddress

import pytest

from app.client_ip import get_client_ip

PROXIES = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "fd00::/8")))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.1", "192.0.2.66, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "192.0.2.66,198.51.100.1 , 10.2.3.4", "198.51.100.1"),
        ("10.0.0.1", "10.9.9.9", "10.9.9.9"),
        ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"),
        ("10.0.0.1", "unknown, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", ",,,", "10.0.0.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("fd00::1", "[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::7", "", "2001:db8:1:2::/64"),
        ("", "192.0.2.66, 198.51.100.1", "198.51.100.1"),
        ("", "", ""),
    ],
)
def test_the_client_address_is_the_one_that_trusted_proxies_forward(peer, forwarded_for, client):
    assert get_client_ip(peer, forwarded_for, PROXIES) == client
