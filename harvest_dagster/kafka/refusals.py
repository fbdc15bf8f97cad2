"""What Kafka, or its client, said when it could not be used, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException

from harvest_dagster.errors import KafkaError as OurKafkaError
from harvest_dagster.text import printable

_AUTHENTICATION: int = KafkaError._AUTHENTICATION  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_SSL: int = KafkaError._SSL  # noqa: SLF001

_OF_TLS = "SSL routines"
"""What OpenSSL says begins so, in errors of any code."""
_ADVICE = {
    _AUTHENTICATION: (
        "check sasl.mechanism, sasl.username and sasl.password, or what gives the token"
    ),
    _SSL: (
        "check ssl.ca.location, ssl.certificate.location and ssl.key.location, that no certificate"
        " has expired, and that the broker's has the name that bootstrap.servers has"
    ),
    **dict.fromkeys(
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        "grant it with kafka-acls.sh, as docs/how-to/security.md lists it",
    ),
}


class UnreachableError(OurKafkaError):
    """Kafka could not be reached within the time given; it may be worth while to try again."""


def explained(error: KafkaError | KafkaException) -> str:
    """Return the fault and what to do, in a line; librdkafka quotes no passwords or keys."""
    fault: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
    # Without the milliseconds behind it, the same trouble reads the same each time.
    said = printable(" ".join(str(fault.str()).partition(" (after ")[0].split()))
    advice = _ADVICE.get(_code(fault))
    return f"{said}; {advice}" if advice else said


def unreachable(servers: str, faults: Sequence[KafkaError], said: str = "") -> str:
    """Return, of what a client heard of its connections, why Kafka can't be used, in a line."""
    telling = [fault for fault in faults if not is_silence(fault)]
    cause = explained(telling[-1]) if telling else said or explained(faults[-1])
    if any(map(is_refusal, faults)):
        return f"Kafka can't be used at bootstrap.servers={servers}: {cause}"
    return (
        f"Kafka can't be reached at bootstrap.servers={servers}: {cause}; check the address, and"
        " that Kafka runs"
    )


def is_silence(fault: KafkaError) -> bool:
    """Return whether no broker answers; what came before it says why."""
    return bool(fault.code() == KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001


def is_refusal(fault: KafkaError) -> bool:
    """Return whether a broker is there, and does not let us in, or we do not trust it."""
    return _code(fault) in {_AUTHENTICATION, _SSL}


def _code(fault: KafkaError) -> int:
    return _SSL if _OF_TLS in str(fault.str()) else fault.code()
