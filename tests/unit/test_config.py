"""app/config.py: every setting."""

import dataclasses
import re
from ipaddress import ip_network

import pytest
from limits import parse

from app.config import Config, ConfigError, find_warnings
from app.database import connect

READ = Config.from_environment
REDIS = {"RATELIMIT_STORAGE_URI": "redis://localhost"}


@pytest.mark.parametrize("field", dataclasses.fields(Config), ids=lambda field: field.name)
def test_a_setting_has_its_default_where_it_is_empty_or_not_set(field):
    name, default = field.name.upper(), field.metadata["default"]
    assert READ({name: "  "}) == READ({name: default}) == READ({}) == Config()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("MONGODB_URI", " mongodb+srv://db ", "mongodb+srv://db"),
        ("MONGODB_DATABASE", "other", "other"),
        ("READ_PREFERENCE", "nearest", "nearest"),
        ("TRUSTED_PROXIES", "10.0.0.5, fd00::/8", (ip_network("10.0.0.5/32"), ip_network("fd00::/8"))),
        ("BIND", "0.0.0.0:80", "0.0.0.0:80"),
        ("BIND", "unix:/run/service", "unix:/run/service"),
        ("METRICS_BIND", "10.0.0.1:9100", "10.0.0.1:9100"),
        ("WEB_CONCURRENCY", "1", 1),
        ("RATE_LIMIT", "10 per second", parse("10/second")),
        ("AUTH_FAILURE_LIMIT", "1 per day", parse("1/day")),
        ("RATELIMIT_STORAGE_URI", "redis://localhost:6379", "redis://localhost:6379"),
        ("PROCESSING_DELAY_HOURS", "0", 0),
        ("PROCESSING_DELAY_HOURS", "1.5", 1.5),
        ("PROCESSING_DELAY_HOURS", "10000", 10_000),
        ("CORS_ORIGINS", "https://a.example, http://b:8080", ("https://a.example", "http://b:8080")),
        ("UNKNOWN_PARAMETERS", "ignore", "ignore"),
        ("LOG_LEVEL", "debug", "DEBUG"),
    ],
)
def test_a_setting_is_read(name, text, value):
    assert READ({name: text}) == dataclasses.replace(Config(), **{name.lower(): value})


INVALID = {
    "MONGODB_URI": ["localhost", "http://db", "mongodb", "mongodb://db/?w=1&readPreference=nearest"],
    "MONGODB_DATABASE": ["a b", "a/b", "a.b", "x" * 64, "$x", "admin", "Admin"],
    "READ_PREFERENCE": ["Primary"],
    "TRUSTED_PROXIES": ["proxy", "10.0.0.1/8", "*", "10.0.0.1:80"],
    "BIND": ["a..b:80", f"{'a' * 64}:80", "unix:", "a:²", "a:٣"],
    "METRICS_BIND": ["9100", "localhost", "unix:/metrics", "host:0", "host:99999"],
    "WEB_CONCURRENCY": ["-1", "257", "1.5", "٣", "9" * 5000],
    "RATE_LIMIT": ["5000", "per minute", "5 per fortnight", "0 per minute", "1/minute; 2/hour", f"{10**15}/minute"],
    "AUTH_FAILURE_LIMIT": ["sixty per minute", "5 per 0 minute", "5 per 00day", "5 per 367 days"],
    "PROCESSING_DELAY_HOURS": ["-1", "four", "nan", "inf", "10001"],
    "PUBLIC_BASE_URL": ["a.example", "https://a.example/", "https://a.example\nhttps://b.example", "https://a:65536"],
    "REPORT_LINK_MINUTES": ["0"],
    "CORS_ORIGINS": ["*", "example.com", "https://a/", "ftp://a", "null", "https://", "https://u:p@a"],
    "RATELIMIT_STORAGE_URI": ["localhost:6379", "http://x", "redis", "//x"],
    "UNKNOWN_PARAMETERS": ["allow"],
    "MAP_TILES_URL": ["https://a/{z}/{x}.png", "a/{z}/{x}/{y}", "https://a/{z}/{x}/{y};script-src *"],
    "LOG_LEVEL": ["LOUD", "20"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in INVALID.items() for text in texts])
def test_a_setting_that_cannot_be_used_is_named_in_one_line(name, text):
    with pytest.raises(ConfigError) as caught:
        READ({name: text})
    assert re.fullmatch(rf"{name}(=.*)? cannot be used: it takes .+\.", str(caught.value))


def test_an_unknown_placeholder_of_the_tiles_is_refused():
    with pytest.raises(ConfigError, match=r"without placeholders other than these and \{r\}"):
        READ({"MAP_TILES_URL": "https://{s}.example.com/{z}/{x}/{y}.png"})


@pytest.mark.parametrize("uri", ["mongodb://", "mongodb://a:b:c", "mongodb://h/?tls=true&tlsCAFile=/nope"])
def test_a_uri_that_leads_to_no_server_is_named(uri):
    with pytest.raises(ConfigError, match=r"^MONGODB_URI\b"):
        connect(uri)


@pytest.mark.parametrize("name", ["MONGODB_URI", "RATELIMIT_STORAGE_URI"])
def test_the_message_about_a_uri_does_not_hold_its_password(name):
    with pytest.raises(ConfigError) as caught:
        READ({name: "nonsense://user:secret@host"})
    assert "secret" not in str(caught.value)


def test_several_workers_need_a_redis():
    assert READ({"WEB_CONCURRENCY": "256", **REDIS}).workers == 256
    with pytest.raises(ConfigError, match="WEB_CONCURRENCY=256 needs RATELIMIT_STORAGE_URI"):
        READ({"WEB_CONCURRENCY": "256"})


def test_unless_set_there_is_one_worker_or_with_a_redis_two_at_the_least():
    assert READ({}).workers == 1
    assert READ(REDIS).workers >= 2


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        pytest.param({"RATE_LIMITS": "5 per minute"}, "did you mean RATE_LIMIT?", id="a letter too many"),
        pytest.param({"RATE_LIMT": "5 per minute"}, "did you mean RATE_LIMIT?", id="a letter too few"),
        pytest.param({"MONGODB_URL": "mongodb://db"}, "did you mean MONGODB_URI?", id="another letter"),
        pytest.param({"MONGO_URL": "mongodb://db"}, "did you mean MONGODB_URI?", id="a shorter word"),
        pytest.param({"log_level": "debug"}, "did you mean LOG_LEVEL?", id="small letters"),
        pytest.param({"SECRET_KEY": "x" * 31}, "SECRET_KEY has fewer than 32 characters", id="a short secret key"),
    ],
)
def test_what_is_likely_to_be_a_mistake_is_named(environ, words):
    (warning,) = find_warnings(environ)
    assert words in warning
    assert not any(value in warning for value in environ.values())


@pytest.mark.parametrize("network", ["0.0.0.0/0", "128.0.0.0/1", "::/0"])
def test_trusted_proxies_that_are_nearly_all_addresses_are_named(network):
    (warning,) = find_warnings({"TRUSTED_PROXIES": f"10.0.0.0/8, {network}"})
    assert warning.startswith(f"TRUSTED_PROXIES has {network}: ")


def test_settings_and_variables_of_other_programs_are_not_doubted():
    settings = {"RATE_LIMIT": "5 per minute", "TRUSTED_PROXIES": "10.0.0.0/8, fc00::/7", "SECRET_KEY": "x" * 32}
    others = ("HTTP_PROXY", "XDG_DATA_HOME", "LOG_FORMAT", "MONGODB_HOST", "HOST", "HOME", "PATH", "RATE", "_", "")
    assert find_warnings(settings | dict.fromkeys(others, "1")) == []
