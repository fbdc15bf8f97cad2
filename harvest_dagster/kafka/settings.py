"""What a Kafka client is set up with: its user's settings, ours on top, and logs where logs go."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError as ErrorCode
from confluent_kafka import KafkaException

from harvest_dagster.config import KafkaConfig
from harvest_dagster.errors import ConfigError, HarvestError
from harvest_dagster.kafka.client_logs import LOGGER
from harvest_dagster.kafka.refusals import UnreachableError, explained
from harvest_dagster.kafka.token_source import OAUTH_CB, token_source
from harvest_dagster.text import one_line

_SECRET = re.compile(
    r"password|passphrase|secret|jaas|credential|token(?!\.endpoint)|user\.info|[._](key|pem)$"
    r"|oauthbearer\.config$",
    re.IGNORECASE,
)
_Client = TypeVar("_Client")


def client_settings(
    base: Mapping[str, object], extra: Mapping[str, object], owned: Mapping[str, str]
) -> dict[str, Any]:
    """Put `extra` on top of the user's `base`, which may name none of `owned` (key: reason)."""
    for key, value in base.items():
        if key in owned:
            raise ConfigError(f"kafka: {key} can't be set here: {owned[key]}; leave it out")
        if not isinstance(value, str | int | float):
            raise ConfigError(
                f"kafka: {key} is {type(value).__name__}; give a string, a number, true or false"
            )
    source = {OAUTH_CB: token_source(str(base[OAUTH_CB]))} if OAUTH_CB in base else {}
    return {**base, **source, "logger": LOGGER, **extra}


def make(kind: Callable[[dict[str, Any]], _Client], settings: dict[str, Any]) -> _Client:
    """Make a client; what librdkafka can't read in its settings is told as a ConfigError.

    A client whose tokens come from Python waits for the first; without it, an UnreachableError.
    """
    try:
        return kind(settings)
    except KafkaException as error:
        raise _refused(error) from None
    except SystemError as error:  # as it gives up, the client calls `error_cb` with its error set
        if not isinstance(error.__cause__, KafkaException):
            raise
        raise _refused(error.__cause__) from None
    except (TypeError, ValueError, ImportError) as error:  # the last for an extra of the client's
        raise ConfigError(f"kafka: {one_line(error)}") from None


def _refused(error: KafkaException) -> HarvestError:
    if error.args[0].code() == ErrorCode.SASL_AUTHENTICATION_FAILED:
        return UnreachableError(f"Kafka's client got no token: {explained(error)}")
    return ConfigError(f"kafka: {error.args[0].str()}")


def masked(settings: KafkaConfig) -> KafkaConfig:
    """Hide passwords, keys and tokens, so that settings can be shown."""
    return {key: "***" if _SECRET.search(key) else value for key, value in settings.items()}
