"""Every setting of the service: its name in the environment, its default, and which values are valid."""

import dataclasses
import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from limits import RateLimitItem, parse_many

from app.client_ip import Network
from schemas.query import UnknownParameters, get_near_name

API = "/api/v1"
# All workers and hosts can share a Redis; `memory` counts in one process.
STORAGE_SCHEMES = ("redis", "rediss", "redis+unix", "redis+sentinel", "memory")
READ_PREFERENCES = ("primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest")

# At most MAX_PORT.
PORT, MAX_PORT = "(?P<port>[1-9][0-9]{0,4})", 65_535
# Connections encode a host name, which fails for an empty or a long label.
HOST = r"([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}|\[[0-9A-Fa-f:]+\]"
ADDRESS = rf"({HOST}):{PORT}"
ORIGIN = rf"https?://({HOST})(:{PORT})?"
BASE_URL = rf"{ORIGIN}(/[A-Za-z0-9._~-]+)*"
# An integer of a structured header field has 15 digits at most (RFC 9651). Redis cannot store an expiry of any length.
MAX_RATE, MAX_WINDOW_SECONDS = 10**15 - 1, 366 * 24 * 3600
# The library `limits` treats `per 0 minutes` as `per 1 minute`.
ZERO_WINDOW = re.compile(r"(/|per)\s*0+\s*[a-z]", re.IGNORECASE)
# Shorter keys can be guessed. `openssl rand -hex 16` prints so many characters.
MIN_SECRET_CHARS = 32
# By the version of IP, those of the largest private networks: 10.0.0.0/8 and fc00::/7.
MIN_PREFIX_BITS = {4: 8, 6: 7}


class ConfigError(Exception):
    """An invalid setting. The message has its name and says which values are valid."""


def _parse_integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(high)) and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


def _parse_hours(text: str) -> float:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) > 10_000:
        raise ValueError("a number of hours from 0 to 10000")
    return float(text)


def _parse_rate(text: str) -> RateLimitItem:
    try:
        (rate,) = parse_many(text)
    except ValueError:
        rate = None
    if rate is None or not 1 <= rate.amount <= MAX_RATE or ZERO_WINDOW.search(text):
        raise ValueError(f"one rate from 1 to {MAX_RATE}, such as '5000 per minute'")
    if rate.get_expiry() > MAX_WINDOW_SECONDS:
        raise ValueError("a rate over a time from 1 second to 366 days, such as '5000 per minute'")
    return rate


def _fits(pattern: str, text: str) -> bool:
    """Return whether a text matches, and the port in it, if any, is one."""
    match = re.fullmatch(pattern, text)
    return match is not None and int(match.groupdict().get("port") or 1) <= MAX_PORT


def _matching(pattern: str, meaning: str) -> Callable[[str], str]:
    """Return a function that returns a text if it is empty or fits, otherwise raises ValueError."""

    def parse(text: str) -> str:
        if text and not _fits(pattern, text):
            raise ValueError(meaning)
        return text

    return parse


def is_address(text: str) -> bool:
    """Return whether a text is ADDRESS:PORT."""
    return _fits(ADDRESS, text)


def is_base_url(text: str) -> bool:
    """Return whether a text is the URL of a service, without a trailing slash, user, password or query."""
    try:
        return _fits(BASE_URL, text) and urlsplit(text).hostname is not None
    except ValueError:
        # Of a host in brackets that is no address of IP version 6.
        return False


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _parse_origins(text: str) -> tuple[str, ...]:
    origins = _split(text)
    if not all(_fits(ORIGIN, origin) for origin in origins):
        raise ValueError("origins such as 'https://app.example.com', separated by commas")
    return origins


def _parse_choice(*choices: str) -> Callable[[str], str]:
    return _matching("|".join(choices), f"one of {', '.join(choices)}")


def _parse_level(text: str) -> str:
    return _parse_choice("DEBUG", "INFO", "WARNING", "ERROR")(text.upper())


def _parse_networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(map(ipaddress.ip_network, _split(text)))
    except ValueError:
        raise ValueError("addresses and networks such as '10.0.0.5, 10.1.0.0/16', separated by commas") from None


_parse_mongodb_uri = _matching(
    r"mongodb(\+srv)?://(?!.*(?i:readpreference=)).*",
    "a URI that begins with mongodb:// or mongodb+srv://, without readPreference: use READ_PREFERENCE",
)
# The name of a database has at most 63 bytes. MongoDB allows no validators in those that it has itself.
_parse_database = _matching(
    r"(?!(?i:admin|config|local)$)[A-Za-z0-9_-]{1,63}",
    "1 to 63 letters, digits, _ or -, but not admin, config or local, which MongoDB uses itself",
)
_parse_storage_uri = _matching(
    rf"({'|'.join(map(re.escape, STORAGE_SCHEMES))})://.*",
    f"a URI of {', '.join(STORAGE_SCHEMES)}, such as redis://localhost:6379",
)
_parse_base_url = _matching(BASE_URL, "a URL such as 'https://api.example.com', without a trailing slash")
# Leaflet replaces the names in braces.
_parse_tiles_url = _matching(
    rf"(?=.*\{{z\}})(?=.*\{{x\}})(?=.*\{{y\}}){ORIGIN}/([A-Za-z0-9._~/?&=%@:-]|\{{[zxyr]\}})+",
    "a URL such as 'https://tiles.example.com/{z}/{x}/{y}.png', without placeholders other than these and {r}",
)


def _setting(default: str, meaning: str, parse: Callable[[str], Any] = str) -> Any:
    return dataclasses.field(
        default_factory=lambda: parse(default), metadata={"default": default, "meaning": meaning, "parse": parse}
    )


@dataclasses.dataclass(frozen=True)
class Config:
    """The settings. Each has the name of its environment variable in lower case."""

    mongodb_uri: str = _setting("", "the MongoDB to use; if empty, an embedded one", _parse_mongodb_uri)
    mongodb_database: str = _setting("driver_analytics", "name of the database", _parse_database)
    read_preference: str = _setting(
        "primaryPreferred",
        f"the replica set members to read from: {', '.join(READ_PREFERENCES)}",
        _parse_choice(*READ_PREFERENCES),
    )
    data_dir: str = _setting(".data", "folder of the embedded MongoDB and of the demonstration key")
    bind: str = _setting(
        "127.0.0.1:8000",
        "address and port, or unix:PATH, on which to serve the API",
        _matching(rf"unix:.+|{ADDRESS}", "ADDRESS:PORT or unix:PATH"),
    )
    metrics_bind: str = _setting(
        "",
        "address and port on which to serve metrics for Prometheus; if empty, there are none",
        _matching(ADDRESS, "ADDRESS:PORT"),
    )
    web_concurrency: int = _setting(
        "0",
        "number of worker processes; 0 is one, or with a Redis one per core, at least two; several need a Redis",
        _parse_integer(0, 256),
    )
    rate_limit: RateLimitItem = _setting("5000 per minute", "requests with the keys of one fleet", _parse_rate)
    driver_rate_limit: RateLimitItem = _setting("60 per minute", "requests with the keys of one driver", _parse_rate)
    auth_failure_limit: RateLimitItem = _setting(
        "60 per minute", "requests without a valid key from one client address", _parse_rate
    )
    trusted_proxies: tuple[Network, ...] = _setting(
        "",
        "addresses and networks, separated by commas, whose X-Forwarded-For and X-Forwarded-Proto are trusted",
        _parse_networks,
    )
    ratelimit_storage_uri: str = _setting(
        "",
        "the Redis in which all workers and hosts count requests, such as redis://localhost:6379; if empty, the memory "
        "of the one worker",
        _parse_storage_uri,
    )
    processing_delay_hours: float = _setting("4", "hours after its end at which a trip becomes visible", _parse_hours)
    public_base_url: str = _setting(
        "", "URL of the service, such as https://api.example.com; if empty, the host of the request", _parse_base_url
    )
    secret_key: str = _setting("", "signs report links; if empty, a new one at each start")
    secret_key_fallbacks: tuple[str, ...] = _setting(
        "", "older secret keys, separated by commas, whose links stay valid", _split
    )
    report_link_minutes: int = _setting("15", "minutes until a report link expires", _parse_integer(1, 10_080))
    cors_origins: tuple[str, ...] = _setting(
        "", "origins, separated by commas, whose scripts may call the API from a browser", _parse_origins
    )
    unknown_parameters: UnknownParameters = _setting(
        "reject",
        "what to do with unknown query parameters: reject or ignore",
        _parse_choice(*get_args(UnknownParameters)),
    )
    map_tiles_url: str = _setting(
        "",
        "URL of the tiles below the trails of the explorer, with {z}, {x} and {y}; if empty, there is a plain grid",
        _parse_tiles_url,
    )
    map_tiles_attribution: str = _setting("", "whose tiles they are; the explorer shows this text on the map")
    mirror_key: str = _setting("", "the API key with which `mirror` reads the other service")
    log_level: str = _setting("INFO", "the lowest level to log: DEBUG, INFO, WARNING or ERROR", _parse_level)

    @property
    def counts_in_redis(self) -> bool:
        """Whether requests are counted in a Redis, and not in the memory of a process."""
        return self.ratelimit_storage_uri.startswith("redis")

    @property
    def workers(self) -> int:
        """The number of worker processes, which depends on WEB_CONCURRENCY and RATELIMIT_STORAGE_URI."""
        return self.web_concurrency or (max(2, os.cpu_count() or 1) if self.counts_in_redis else 1)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Config":
        """Return the settings of an environment. An empty variable counts as unset. Raises ConfigError."""
        values = {}
        for field in dataclasses.fields(cls):
            name = field.name.upper()
            if text := environ.get(name, "").strip():
                try:
                    values[field.name] = field.metadata["parse"](text)
                except ValueError as error:
                    # A URI may contain a password. A line break would end the line of the message.
                    quoted = text.isprintable() and not name.endswith("_URI")
                    setting = f"{name}={text}" if quoted else name
                    raise ConfigError(f"{setting} cannot be used: it takes {error}.") from None
        config = cls(**values)
        if config.workers > 1 and not config.counts_in_redis:
            raise ConfigError(
                f"WEB_CONCURRENCY={config.workers} needs RATELIMIT_STORAGE_URI=redis://HOST:PORT. Without a Redis each "
                "process counts requests in its own memory, so the rate limit would not apply to all of them together."
            )
        return config


def find_misspelt(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence on each variable of an environment whose name is nearly that of a setting."""
    names = [field.name.upper() for field in dataclasses.fields(Config)]
    return [
        f"{variable} is not a setting: did you mean {name}?"
        for variable in environ
        if variable not in names and (name := get_near_name(variable, names))
    ]


def find_warnings(environ: Mapping[str, str]) -> list[str]:
    """Return a sentence on each setting of an environment that is valid and likely to be a mistake."""
    warnings = find_misspelt(environ) + [
        f"TRUSTED_PROXIES has {network}: a client with one of so many addresses can claim any other one, so "
        "AUTH_FAILURE_LIMIT limits nobody. Set it to the addresses of your proxies."
        for network in _parse_networks(environ.get("TRUSTED_PROXIES", ""))
        if network.prefixlen < MIN_PREFIX_BITS[network.version]
    ]
    if 0 < len(environ.get("SECRET_KEY", "").strip()) < MIN_SECRET_CHARS:
        warnings.append(
            f"SECRET_KEY has fewer than {MIN_SECRET_CHARS} characters: a person who guesses it can forge report links. "
            "Set it to the output of openssl rand -hex 32."
        )
    return warnings
