"""What Kafka, or its client, said when it could not be used, and what to do about it."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from harvest_dagster.text import printable

_AUTHENTICATION: int = KafkaError._AUTHENTICATION  # noqa: SLF001 - librdkafka's own codes begin with an underscore
_SSL: int = KafkaError._SSL  # noqa: SLF001

_OF_TLS = "SSL routines"
"""What OpenSSL says begins so, in errors of any code."""
_ADVICE = {
    _AUTHENTICATION: "check sasl.mechanism, sasl.username and sasl.password",
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


def explained(error: KafkaError | KafkaException) -> str:
    """Return the fault and what to do, in a line; librdkafka quotes no passwords or keys."""
    fault: KafkaError = error.args[0] if isinstance(error, KafkaException) else error
    # Without the milliseconds behind it, the same trouble reads the same each time.
    said = printable(" ".join(str(fault.str()).partition(" (after ")[0].split()))
    advice = _ADVICE.get(_code(fault))
    return f"{said}; {advice}" if advice else said


def is_refusal(fault: KafkaError) -> bool:
    """Return whether a broker is there, and does not let us in, or we do not trust it."""
    return _code(fault) in {_AUTHENTICATION, _SSL}


def _code(fault: KafkaError) -> int:
    return _SSL if _OF_TLS in str(fault.str()) else fault.code()
