"""A Kafka that lets in who shows a token, and the place that gives tokens out.

Both are as in a company: tokens are signed, Kafka knows the keys that sign them, and ends a
connection whose token has expired unless its client shows another one.
"""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from harvest_dagster.embedded import ports
from harvest_dagster.embedded.jars import have_jars
from harvest_dagster.embedded.java import find_java
from harvest_dagster.embedded.kafka_node import JARS, MAIN
from tests.support.waiting import until

AUDIENCE = "kafka"
SECRET = "the-secret"  # noqa: S105 - of a server that lives for one test
_KEY = "key-1"
_TOKEN_PATH = "/token"  # noqa: S105 - where tokens are asked for
_LISTENERS = {"OAUTH": "SASL_PLAINTEXT", "INSIDE": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


class Issuer:
    """Signs tokens that live for so many seconds, and counts them."""

    def __init__(self, lifetime: float = 3600) -> None:
        self.lifetime, self.issued = lifetime, 0
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, user: str, **changes: Any) -> str:
        """Return a token that says who its bearer is."""
        self.issued += 1
        now = time.time()
        said = {"sub": user, "aud": AUDIENCE, "iat": now, "exp": now + self.lifetime, **changes}
        signed = f"{_json({'alg': 'RS256', 'typ': 'JWT', 'kid': _KEY})}.{_json(said)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return f"{signed}.{_base64(signature)}"

    def keys(self) -> dict[str, Any]:
        """Return the public keys, as JSON Web Keys are written."""
        numbers = self._key.public_key().public_numbers()
        n, e = (_base64(part.to_bytes(256).lstrip(b"\0")) for part in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY, "n": n, "e": e}]}

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Give tokens out to who knows the secret; give the URL where."""
        server = ThreadingHTTPServer((ports.HOST, 0), self._handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://{ports.HOST}:{server.server_port}{_TOKEN_PATH}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    @cached_property
    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                given = self.headers.get("Authorization", "").removeprefix("Basic ")
                user, _, secret = base64.b64decode(given).decode().partition(":")
                if secret != SECRET:
                    self.send_error(401)
                    return
                answer = {"access_token": issuer.token(user), "expires_in": issuer.lifetime}
                content = json.dumps({**answer, "token_type": "Bearer"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextmanager
def kafka_of(issuer: Issuer, folder: Path) -> Iterator[str]:
    """Run a Kafka that takes this issuer's tokens; give its address."""
    keys, properties = folder / "keys.json", folder / "server.properties"
    keys.write_text(json.dumps(issuer.keys()))
    places = ports.choose(_LISTENERS)
    settings = _properties(places, folder / "data", keys)
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    jars = have_jars(JARS, find_java(), folder / "download.log", print)
    java = [find_java(), "-cp", f"{jars}/*", "-Xmx512m", allowed]
    format_ = ["kafka.tools.StorageTool", "format", "-t", _base64(uuid.uuid4().bytes)]
    subprocess.run([*java, *format_, "-c", str(properties)], check=True, capture_output=True)
    with (folder / "kafka.log").open("wb") as log:
        process = subprocess.Popen([*java, MAIN, str(properties)], stdout=log, stderr=log)
        try:
            inside = AdminClient({"bootstrap.servers": f"{ports.HOST}:{places['INSIDE']}"})
            until(lambda: process.poll() is not None or _answers(inside))
            assert process.poll() is None, (folder / "kafka.log").read_text()
            yield f"{ports.HOST}:{places['OAUTH']}"
        finally:
            process.kill()
            process.wait()


def _properties(places: dict[str, int], data: Path, keys: Path) -> dict[str, str]:
    listeners = {name: f"{name}://{ports.HOST}:{port}" for name, port in places.items()}
    oauth = "listener.name.oauth"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{ports.HOST}:{places['CONTROLLER']}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": f"{listeners['OAUTH']},{listeners['INSIDE']}",
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in _LISTENERS.items()),
        "inter.broker.listener.name": "INSIDE",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        f"{oauth}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{oauth}.oauthbearer.sasl.jaas.config": _LOGIN,
        f"{oauth}.oauthbearer.sasl.server.callback.handler.class": _HANDLER,
        f"{oauth}.oauthbearer.connections.max.reauth.ms": "3600000",
        f"{oauth}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        f"{oauth}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
    }


def _answers(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def _json(said: dict[str, Any]) -> str:
    return _base64(json.dumps(said).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
