"""Every setting of the service: its name in the environment, default, unit and meaning."""

import dataclasses
import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from limits import RateLimitItem, parse_many

from app.client_ip import Network
from schemas.params import UnknownParameters

API = "/api/v1"
MAX_PORT = 65_535
# All workers and hosts share a Redis; `memory` is for one process.
COUNTER_SCHEMES = ("redis", "rediss", "redis+unix", "redis+sentinel", "memory")
READ_PREFERENCES = ("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest")

ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]+)?|https?://\[[0-9a-f:]+\](:[0-9]+)?")
BASE_URL = re.compile(rf"({ORIGIN.pattern})(/[A-Za-z0-9._~-]+)*")
# MongoDB takes 63 bytes.
DATABASE = re.compile(r"[A-Za-z0-9_-]{1,63}")


class ConfigError(Exception):
    """A setting that cannot be used; the message names it and says what it takes."""


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return read


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours <= 10_000:
        raise ValueError("a number of hours from 0 to 10000")
    return hours


def _rate(text: str) -> RateLimitItem:
    try:
        rates = parse_many(text)
    except ValueError:
        rates = []
    if len(rates) != 1 or rates[0].amount < 1:
        raise ValueError("one rate of one or more, such as '5000 per minute'")
    return rates[0]


def _bind(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (text.startswith("unix:") and port) and not (host and port.isdigit() and 0 < int(port[:6]) <= MAX_PORT):
        raise ValueError("ADDRESS:PORT or unix:PATH")
    return text


def _address(text: str) -> str:
    if text.startswith("unix:"):
        raise ValueError("ADDRESS:PORT")
    return text and _bind(text)


def _several(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _origins(text: str) -> tuple[str, ...]:
    origins = _several(text)
    if not all(map(ORIGIN.fullmatch, origins)):
        raise ValueError("origins such as 'https://app.example.com', separated by commas")
    return origins


def _base_url(text: str) -> str:
    if text and not BASE_URL.fullmatch(text):
        raise ValueError("a URL such as 'https://api.example.com', without a slash at its end")
    return text


def _mongodb_uri(text: str) -> str:
    if text and not text.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("a URI that begins with mongodb:// or mongodb+srv://")
    if "readpreference=" in text.lower():
        raise ValueError("a URI without readPreference, for which there is READ_PREFERENCE")
    return text


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return read


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(map(ipaddress.ip_network, _several(text)))
    except ValueError:
        raise ValueError("addresses and networks such as '10.0.0.5, 10.1.0.0/16', separated by commas") from None


def _counters_uri(text: str) -> str:
    if text and urlsplit(text).scheme not in COUNTER_SCHEMES:
        raise ValueError(f"a URI of {', '.join(COUNTER_SCHEMES)}, such as redis://localhost:6379")
    return text


def _database(text: str) -> str:
    if not DATABASE.fullmatch(text):
        raise ValueError("1 to 63 letters, digits, _ or -")
    return text


def _level(text: str) -> str:
    if text.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ValueError("one of DEBUG, INFO, WARNING, ERROR")
    return text.upper()


def _setting(default: str, meaning: str, read: Callable[[str], Any] = str) -> Any:
    return dataclasses.field(
        default_factory=lambda: read(default), metadata={"default": default, "meaning": meaning, "read": read}
    )


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings, each named like its variable in the environment, in lower case."""

    mongodb_uri: str = _setting("", "the MongoDB to use; an embedded one where it is empty", _mongodb_uri)
    mongodb_database: str = _setting("driver_analytics", "name of the database", _database)
    read_preference: str = _setting(
        "primaryPreferred",
        f"which members of a replica set are read: {', '.join(READ_PREFERENCES)}",
        _one_of(*READ_PREFERENCES),
    )
    data_dir: str = _setting(".data", "folder of the embedded MongoDB and the demonstration key")
    bind: str = _setting("127.0.0.1:8000", "address and port, or unix:PATH, to serve on", _bind)
    metrics_bind: str = _setting("", "address and port to serve metrics for Prometheus on; none where empty", _address)
    web_concurrency: int = _setting(
        "0",
        "worker processes; 0 takes one, or with a Redis one per core, two at the least; several need a Redis",
        _whole(0, 256),
    )
    rate_limit: RateLimitItem = _setting("5000 per minute", "authenticated calls of one fleet", _rate)
    auth_failure_limit: RateLimitItem = _setting(
        "60 per minute", "calls without a valid key from one client address", _rate
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        "", "addresses and networks, separated by commas, whose X-Forwarded-For is believed", _networks
    )
    ratelimit_storage_uri: str = _setting(
        "",
        "the Redis that all workers and hosts count requests in, such as redis://localhost:6379; the memory of the one "
        "worker where empty",
        _counters_uri,
    )
    processing_delay_hours: float = _setting("4", "hours after its end from which on a trip is served", _hours)
    public_base_url: str = _setting(
        "", "where clients reach the service, such as https://api.example.com; as they came where empty", _base_url
    )
    secret_key: str = _setting("", "signs report links; made anew at each start where empty")
    secret_key_fallbacks: tuple[str, ...] = _setting(
        "", "older secret keys, separated by commas, whose links are still taken", _several
    )
    report_link_minutes: int = _setting("15", "minutes for which a report link is good", _whole(1, 10_080))
    cors_origins: tuple[str, ...] = _setting("", "origins that browsers may call from, separated by commas", _origins)
    unknown_parameters: UnknownParameters = _setting(
        "reject",
        "what to do with query parameters that an endpoint does not have: reject or ignore",
        _one_of(*get_args(UnknownParameters)),
    )
    log_level: str = _setting("INFO", "DEBUG, INFO, WARNING or ERROR", _level)

    @property
    def counts_in_redis(self) -> bool:
        """Return whether requests are counted in a Redis, and not in the memory of a process."""
        return self.ratelimit_storage_uri.startswith("redis")

    @property
    def workers(self) -> int:
        """Return the number of worker processes that WEB_CONCURRENCY stands for."""
        return self.web_concurrency or (max(2, os.cpu_count() or 1) if self.counts_in_redis else 1)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Config":
        """Read every setting that is set and not empty. Raises ConfigError for one that cannot be used."""
        values = {}
        for field in dataclasses.fields(cls):
            name = field.name.upper()
            if text := environ.get(name, "").strip():
                try:
                    values[field.name] = field.metadata["read"](text)
                except ValueError as error:
                    # A URI may hold a password.
                    given = name if name.endswith("_URI") else f"{name}={text}"
                    raise ConfigError(f"{given} cannot be used: it takes {error}.") from None
        config = cls(**values)
        if config.workers > 1 and not config.counts_in_redis:
            raise ConfigError(
                f"WEB_CONCURRENCY={config.workers} needs RATELIMIT_STORAGE_URI=redis://HOST:PORT: without a Redis each "
                "process counts requests in its own memory, and the rate limit does not hold."
            )
        return config
