"""Whoever is not let in is told why, and what to do, in a line without a secret."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster.kafka.refusals import UnreachableError
from harvest_dagster.kafka.topics import ensure_topic
from tests.support.command import Harvest
from tests.support.secure import EXPIRED, SOMEBODY, STRANGER, STRANGERS_CA, Secure

SECRET = "hunter2-hunter2"  # noqa: S105 - what must not be shown


def changed(url: str, **query: str | None) -> str:
    """Change the query of a URL."""
    made = sa.make_url(url)
    kept = {key: value for key, value in made.query.items() if key not in query}
    given = {key: value for key, value in query.items() if value is not None}
    return made.set(query={**kept, **given}).render_as_string(hide_password=False)


POSTGRES = {
    "wrong password": ("password authentication failed", "check user and password"),
    "clear text": ("no encryption", "connect with sslmode=verify-full"),
    "another authority": ("certificate verify failed", "sslrootcert must name the authority"),
    "another name": ("does not match host name", "connect by a name that"),
    "no certificate": ("requires a valid client certificate", "give a client certificate, with"),
    "expired certificate": ("certificate expired", "renew what sslcert names"),
    "a stranger's certificate": ("unknown ca", "the server trusts another authority"),
}


def wrong_url(secure: Secure, what: str) -> str:
    """Make a URL that is wrong in one thing."""
    plain, mtls = secure.postgres, secure.postgres_mtls
    bad = {name: secure.file(name) for name in (EXPIRED, STRANGER, STRANGERS_CA)}
    if what == "wrong password":
        return sa.make_url(plain).set(password=SECRET).render_as_string(hide_password=False)
    if what == "another name":
        named = changed(plain, hostaddr="127.0.0.1")
        return named.replace("@127.0.0.1:", "@elsewhere.invalid:")
    return {
        "clear text": changed(plain, sslmode="disable"),
        "another authority": changed(plain, sslrootcert=bad[STRANGERS_CA]),
        "no certificate": changed(mtls, sslcert=None, sslkey=None),
        "expired certificate": changed(mtls, sslcert=bad[EXPIRED], sslkey=bad[EXPIRED]),
        "a stranger's certificate": changed(mtls, sslcert=bad[STRANGER], sslkey=bad[STRANGER]),
    }[what]


@pytest.mark.parametrize("what", POSTGRES)
def test_postgres(
    harvest: Harvest, secure: Secure, what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """What PostgreSQL refuses is one line: why, and what to do."""
    monkeypatch.setenv("HOME", str(tmp_path))  # where libpq would look for a certificate
    refused = harvest("status", HARVEST_POSTGRES=wrong_url(secure, what))
    why, advice = POSTGRES[what]
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert why in refused.stderr
    assert advice in refused.stderr
    assert secure.password not in refused.stderr
    assert SECRET not in refused.stderr


def test_postgres_asks_for_the_password_too(secure: Secure) -> None:
    """A certificate alone does not do."""
    wrong = sa.make_url(secure.postgres_mtls).set(password=SECRET)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong.render_as_string(hide_password=False))


def test_postgres_asks_for_the_roles_own_certificate(secure: Secure) -> None:
    """A certificate by the right authority does not do if its name is not the role's."""
    own = secure.file(SOMEBODY)
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        psycopg.connect(changed(secure.postgres_mtls, sslcert=own, sslkey=own))


KAFKA: dict[str, tuple[str, dict[str, Any]]] = {
    "wrong password": ("kafka", {"sasl.password": SECRET}),
    "unknown user": ("kafka", {"sasl.username": "nobody", "sasl.password": SECRET}),
    "another authority": ("kafka", {"ssl.ca.location": STRANGERS_CA}),
    "another name": ("kafka", {"bootstrap.servers": "127.1"}),
    "no certificate": (
        "kafka_mtls",
        {"ssl.certificate.location": None, "ssl.key.location": None},
    ),
    "expired certificate": (
        "kafka_mtls",
        {"ssl.certificate.location": EXPIRED, "ssl.key.location": EXPIRED},
    ),
    "a stranger's certificate": (
        "kafka_mtls",
        {"ssl.certificate.location": STRANGER, "ssl.key.location": STRANGER},
    ),
}
SASL_ADVICE = "check sasl.mechanism, sasl.username and sasl.password, or what gives the token"
SSL_ADVICE = "check ssl.ca.location, ssl.certificate.location and ssl.key.location"


def wrong_settings(secure: Secure, what: str) -> dict[str, Any]:
    """Make settings that are wrong in one thing."""
    way, changes = KAFKA[what]
    settings: dict[str, Any] = dict(getattr(secure, way))
    for key, value in changes.items():
        if value is None:
            del settings[key]
        elif key == "bootstrap.servers":
            settings[key] = str(settings[key]).replace("127.0.0.1", value)
        else:
            settings[key] = secure.file(value) if key.endswith("location") else value
    return settings


@pytest.mark.parametrize("what", KAFKA)
def test_kafka(secure: Secure, what: str, caplog: pytest.LogCaptureFixture) -> None:
    """What Kafka refuses is one line: why, and what to do; the client's log has no secret."""
    with pytest.raises(UnreachableError) as refused:
        ensure_topic(wrong_settings(secure, what), "t", 1, within_seconds=1)
    said = str(refused.value)
    assert said.startswith("Kafka can't be used at bootstrap.servers=127.")
    assert (SASL_ADVICE if what in {"wrong password", "unknown user"} else SSL_ADVICE) in said
    assert said.isprintable()
    for secret in (SECRET, secure.password):
        assert secret not in said + caplog.text
