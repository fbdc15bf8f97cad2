"""A harvest at a Kafka that asks for tokens, which expire while it works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harvest_dagster.kafka.refusals import UnreachableError
from harvest_dagster.kafka.topics import ensure_topic
from tests.support.account import judge, read
from tests.support.oauth import SECRET, Issuer, kafka_of
from tests.support.place import Place
from tests.support.running import StartHarvest
from tests.support.waiting import until

LIFETIME = 6.0
OIDC = {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "shop",
    "sasl.oauthbearer.client.secret": SECRET,
}
OWN = """
import base64, json, time, urllib.request

def oauth_cb(endpoint):
    known = {"Authorization": "Basic " + base64.b64encode(b"shop:%s").decode()}
    with urllib.request.urlopen(urllib.request.Request(endpoint, b"", known)) as answer:
        said = json.load(answer)
    return said["access_token"], time.time() + said["expires_in"]
"""
FALTERING = """
calls = []

def oauth_cb(endpoint):
    calls.append(endpoint)
    if len(calls) == 2:
        raise OSError("no role yet")
    return give(endpoint)
"""
Kafka = dict[str, Any]


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """Who signs the tokens."""
    return Issuer(LIFETIME)


@pytest.fixture(scope="module")
def endpoint(issuer: Issuer) -> Iterator[str]:
    """Where the tokens are given out."""
    with issuer.serving() as url:
        yield url


@pytest.fixture(scope="module")
def asking(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """What leads to a Kafka that asks for these tokens."""
    with kafka_of(issuer, tmp_path_factory.mktemp("kafka")) as address:
        yield {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
        }


@pytest.fixture
def oidc(asking: Kafka, endpoint: str) -> Kafka:
    """The settings by which librdkafka asks for tokens itself."""
    return {**asking, **OIDC, "sasl.oauthbearer.token.endpoint.url": endpoint}


@pytest.fixture
def own(asking: Kafka, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """The settings by which a module of the user's does."""
    (tmp_path / "own_tokens.py").write_text(OWN % SECRET)
    monkeypatch.syspath_prepend(str(tmp_path))
    return {**asking, "oauth_cb": "own_tokens", "sasl.oauthbearer.config": endpoint}


@pytest.mark.parametrize("way", ["oidc", "own"])
def test_it_outlives_its_tokens(
    way: str,
    oidc: Kafka,
    database: str,
    start_harvest: StartHarvest,
    request: pytest.FixtureRequest,
) -> None:
    """Whoever gives the tokens, a leader goes on beyond the end of those it began with."""
    place = Place(database, oidc)
    running = start_harvest(place.config(base_kafka=request.getfixturevalue(way)))
    later = time.time() + 2 * LIFETIME
    until(lambda: place.put(5) and time.time() > later, pause=0.2)
    place.drained()
    assert running.kinds().count("LeaderAcquired") == 1
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_no_token_for_a_while(
    oidc: Kafka,
    own: Kafka,
    database: str,
    start_harvest: StartHarvest,
    tmp_path: Path,
) -> None:
    """A candidate that gets no token when it stands says so, stands again, and leads."""
    given = OWN % SECRET
    source = given.replace("def oauth_cb", "def give") + FALTERING
    (tmp_path / "faltering_tokens.py").write_text(source)
    place = Place(database, oidc)
    place.put(10)
    running = start_harvest(place.config(base_kafka={**own, "oauth_cb": "faltering_tokens"}))
    runner = running.harvest.runner
    until(lambda: any("got no token" in trouble for trouble in runner.troubles))
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def test_a_token_of_somebody_else(
    asking: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that another has signed opens nothing, and what to look at is told."""
    (tmp_path / "forged_tokens.py").write_text(
        "import time\nfrom tests.support.oauth import Issuer\n"
        "def oauth_cb(_): return Issuer().token('shop'), time.time() + 100\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnreachableError, match=r"invalid_token.*what gives the token"):
        ensure_topic({**asking, "oauth_cb": "forged_tokens"}, "t", 1, within_seconds=5)


def test_a_wrong_secret(oidc: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    """Who is given no token is told so; the secret is not."""
    wrong = {**oidc, "sasl.oauthbearer.client.secret": "guessed"}
    with pytest.raises(
        UnreachableError, match=r"OAUTHBEARER token.*what gives the token"
    ) as refused:
        ensure_topic(wrong, "t", 1, within_seconds=5)
    assert "guessed" not in caplog.text + str(refused.value)
