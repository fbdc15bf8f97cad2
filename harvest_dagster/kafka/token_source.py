"""Tokens for Kafka that a user's own Python makes.

`oauth_cb` names a module, and the module's function of that name gives the tokens. So a file, the
environment and a run of Dagster's can say it, and nobody who may write settings can have any
function called that was not written for this.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import wraps

from harvest_dagster.errors import ConfigError
from harvest_dagster.kafka.client_logs import LOGGER
from harvest_dagster.text import one_line, printable

OAUTH_CB = "oauth_cb"
TokenSource = Callable[[str], tuple[str, float]]
"""It takes `sasl.oauthbearer.config`, and returns a token, and its end in seconds since 1970."""

_ENDED = ("none", 0.0)
"""librdkafka refuses a token that has ended, says so in its errors, and asks again in 10 s."""


def token_source(module: str) -> TokenSource:
    """Return a module's function `oauth_cb`, which logs why it gave no token."""
    shown = printable(module)
    try:
        found: TokenSource | None = getattr(importlib.import_module(module), OAUTH_CB, None)
    except (ImportError, ValueError, TypeError) as error:  # the last two for what is no name
        raise ConfigError(
            f"kafka: {OAUTH_CB} names the module {shown}, which can't be imported:"
            f" {one_line(error)}; install it, or put its folder into PYTHONPATH"
        ) from None
    if not callable(found):
        raise ConfigError(
            f"kafka: {OAUTH_CB} names the module {shown}, which has no function {OAUTH_CB}: give it"
            " one that takes sasl.oauthbearer.config and returns a token, and when it ends"
        )
    return _logged(found, shown)


def _logged(source: TokenSource, module: str) -> TokenSource:
    @wraps(source)
    def give(config: str) -> tuple[str, float]:
        try:
            return source(config)
        except Exception as error:  # noqa: BLE001 - a client that gets any is never the same again
            LOGGER.error("%s of %s gave no token: %s", OAUTH_CB, module, one_line(error))
            return _ENDED

    return give
