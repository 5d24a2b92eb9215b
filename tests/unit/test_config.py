"""app/config.py: every setting."""

import dataclasses
import re
from ipaddress import ip_network

import pytest
from limits import parse

from app.config import Config, ConfigError
from app.database import connect

READ = Config.from_environment


def test_unset_settings_have_their_defaults():
    assert READ({}) == Config()
    assert (Config().mongodb_database, Config().data_dir) == ("driver_analytics", ".data")
    assert (Config().bind, Config().processing_delay_hours) == ("127.0.0.1:8000", 4)
    assert (Config().rate_limit, Config().auth_failure_limit) == (parse("5000/minute"), parse("60/minute"))
    assert (Config().cors_origins, Config().unknown_parameters) == ((), "reject")


@pytest.mark.parametrize("field", dataclasses.fields(Config), ids=lambda field: field.name)
def test_an_empty_setting_is_the_default(field):
    assert READ({field.name.upper(): "  "}) == Config()


@pytest.mark.parametrize("field", dataclasses.fields(Config), ids=lambda field: field.name)
def test_a_setting_says_what_it_means_and_its_default_can_be_read(field):
    assert field.metadata["meaning"]
    assert READ({field.name.upper(): field.metadata["default"]}) == Config()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("MONGODB_URI", "mongodb://db:27017", "mongodb://db:27017"),
        ("MONGODB_URI", " mongodb+srv://db ", "mongodb+srv://db"),
        ("MONGODB_DATABASE", "other", "other"),
        ("READ_PREFERENCE", "nearest", "nearest"),
        ("TRUSTED_PROXIES", "10.0.0.5, fd00::/8", (ip_network("10.0.0.5/32"), ip_network("fd00::/8"))),
        ("DATA_DIR", "/var/lib/data", "/var/lib/data"),
        ("BIND", "0.0.0.0:80", "0.0.0.0:80"),
        ("METRICS_BIND", "10.0.0.1:9100", "10.0.0.1:9100"),
        ("WEB_CONCURRENCY", "0", 0),
        ("WEB_CONCURRENCY", "1", 1),
        ("RATE_LIMIT", "10 per second", parse("10/second")),
        ("RATE_LIMIT", "100/hour", parse("100/hour")),
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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("MONGODB_URI", text) for text in ("localhost", "http://db", "mongodb", "MONGODB", "redis://x")),
        ("MONGODB_URI", "mongodb://db/?w=1&readPreference=nearest"),
        *(("READ_PREFERENCE", text) for text in ("Primary", "closest")),
        *(("TRUSTED_PROXIES", text) for text in ("proxy", "10.0.0.1/8", "10.0.0.0/33", "*", "10.0.0.1:80")),
        *(("BIND", text) for text in ("a..b:80", f"{'a' * 64}:80", "unix:", "a:²", "a:٣")),
        *(
            ("METRICS_BIND", text)
            for text in ("a..b:80", "9100", "localhost", "unix:/run/metrics", "host:0", "host:99999")
        ),
        *(("WEB_CONCURRENCY", text) for text in ("-1", "257", "1.5", "two", "+1", "٣", "1e1", "9" * 5000)),
        *(("RATE_LIMIT", text) for text in ("5000", "per minute", "x per minute", "5 per fortnight", "-")),
        *(("AUTH_FAILURE_LIMIT", text) for text in ("60", "sixty per minute")),
        *(("PROCESSING_DELAY_HOURS", text) for text in ("-1", "four", "nan", "inf", "-inf", "10001", "4h", "1e400")),
        *(
            ("CORS_ORIGINS", text)
            for text in ("*", "example.com", "https://a.example/", "https://a/b", "ftp://a", "null")
        ),
        *(("RATELIMIT_STORAGE_URI", text) for text in ("localhost:6379", "http://x", "redis", "//x", "mongodb://x")),
        *(("UNKNOWN_PARAMETERS", text) for text in ("Ignore", "allow", "true")),
        *(
            ("MAP_TILES_URL", text)
            for text in (
                "https://a/{z}/{x}.png",
                "a/{z}/{x}/{y}",
                "https://{s}.a/{z}/{x}/{y}",
                "https://a/{z}/{x}/{y};script-src *",
                "https://a b/{z}/{x}/{y}",
                "https://a/{z}/{x}/{y}/{s}",
            )
        ),
        *(("LOG_LEVEL", text) for text in ("LOUD", "CRITICAL!", "20", "trace")),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name, text):
    with pytest.raises(ConfigError, match=rf"^{name}\b"):
        READ({name: text})


def test_an_unknown_placeholder_of_the_tiles_is_named():
    with pytest.raises(ConfigError, match=r"without \{s\}; its placeholders may be \{z\}, \{x\}, \{y\} and \{r\}"):
        READ({"MAP_TILES_URL": "https://{s}.example.com/{z}/{x}/{y}.png"})


@pytest.mark.parametrize("uri", ["mongodb://", "mongodb://a:b:c", "mongodb://u:p@:1@h"])
def test_a_uri_that_names_no_server_is_named(uri):
    with pytest.raises(ConfigError, match=r"^MONGODB_URI\b"):
        connect(uri)


def test_a_uri_with_a_certificate_that_does_not_exist_is_named():
    with pytest.raises(ConfigError, match=r"^MONGODB_URI cannot be used: a file .* No such file or directory\.$"):
        connect("mongodb://h/?tls=true&tlsCAFile=/nope")


def test_several_workers_need_a_redis():
    redis = {"RATELIMIT_STORAGE_URI": "redis://localhost"}
    assert READ({"WEB_CONCURRENCY": "256", **redis}).workers == 256
    with pytest.raises(ConfigError, match="WEB_CONCURRENCY=256 needs RATELIMIT_STORAGE_URI"):
        READ({"WEB_CONCURRENCY": "256"})


def test_unless_set_there_is_one_worker_or_with_a_redis_two_at_the_least():
    assert READ({}).workers == 1
    assert READ({"RATELIMIT_STORAGE_URI": "redis://localhost"}).workers >= 2


def test_other_variables_are_left_alone():
    assert READ({"PATH": "/bin", "mongodb_uri": "nonsense", "WEB_CONCURRENCY_": "x"}) == Config()


def test_settings_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().bind = "x"


@pytest.mark.parametrize(
    "uri", ["redis://:p[secret]@h", "redis://:secret\u2100@h:6379", "redis://[::1", "redis://[secret]"]
)
def test_the_message_about_a_malformed_uri_does_not_quote_it(uri):
    with pytest.raises(ConfigError, match=r"^RATELIMIT_STORAGE_URI cannot be used: it takes a URI of redis,") as caught:
        READ({"RATELIMIT_STORAGE_URI": uri})
    assert not re.search(r"secret|::1|\u2100", str(caught.value))


@pytest.mark.parametrize("name", ["MONGODB_URI", "RATELIMIT_STORAGE_URI"])
def test_the_message_about_a_uri_does_not_hold_its_password(name):
    with pytest.raises(ConfigError) as caught:
        READ({name: "nonsense://user:secret@host"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", ["a b", "a/b", "a.b", "x" * 64, "$x"])
def test_a_database_name_that_mongodb_does_not_take_is_refused(text):
    with pytest.raises(ConfigError, match="MONGODB_DATABASE"):
        READ({"MONGODB_DATABASE": text})


@pytest.mark.parametrize("text", ["admin", "config", "local", "Admin"])
def test_a_database_of_mongodb_itself_is_refused_with_another_name(text):
    with pytest.raises(ConfigError, match=f"^MONGODB_DATABASE={text} cannot be used: it takes a name such as driver_a"):
        READ({"MONGODB_DATABASE": text})


def test_a_number_of_any_length_gets_the_same_reason():
    with pytest.raises(ConfigError, match="a whole number from 0 to 256"):
        READ({"WEB_CONCURRENCY": "9" * 5000})


def test_a_value_with_a_line_break_gets_a_reason_in_one_line():
    with pytest.raises(ConfigError, match=r"^PUBLIC_BASE_URL cannot be used: it takes a URL .*slash\.$"):
        READ({"PUBLIC_BASE_URL": "https://a.example\nhttps://b.example"})


def test_the_reason_for_a_metrics_address_names_no_unix_path():
    with pytest.raises(ConfigError, match=r"^METRICS_BIND=x cannot be used: it takes ADDRESS:PORT\.$"):
        READ({"METRICS_BIND": "x"})


@pytest.mark.parametrize("text", ["https://", "https://a,http://", "https://user:pw@a", "https://a/b", "https://a b"])
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(ConfigError, match="CORS_ORIGINS"):
        READ({"CORS_ORIGINS": text})


@pytest.mark.parametrize("text", ["0 per minute", "5 per minute; 1 per second", ";", f"{10**15} per minute"])
@pytest.mark.parametrize("name", ["RATE_LIMIT", "AUTH_FAILURE_LIMIT"])
def test_what_is_not_one_rate_of_one_to_15_digits_is_refused(name, text):
    with pytest.raises(ConfigError, match=f"^{name}=.* it takes one rate from 1 to 999999999999999, such as"):
        READ({name: text})


def test_a_rate_of_15_digits_is_read():
    assert READ({"RATE_LIMIT": f"{10**15 - 1} per minute"}).rate_limit.amount == 10**15 - 1


@pytest.mark.parametrize("period", ["0 minute", "00day", "99999999999 years", "367 days", "2 years"])
def test_a_rate_with_a_period_that_cannot_be_counted_is_refused(period):
    with pytest.raises(ConfigError, match="a time from 1 second to 366 days"):
        READ({"RATE_LIMIT": f"5 per {period}"})


@pytest.mark.parametrize("period", ["1 second", "10 minutes", "366 days", "year"])
def test_a_rate_with_a_period_of_up_to_a_year_is_read(period):
    assert READ({"RATE_LIMIT": f"5 per {period}"}).rate_limit == parse(f"5 per {period}")
