"""What PostgreSQL said when it could not be used, in a line, and what to do about it."""

from __future__ import annotations

import re

import psycopg

from harvest_dagster.text import one_line

_ADVICE = {
    r"password authentication failed|no password supplied": (
        "check user and password, as HARVEST_POSTGRES or the harvest's file has them"
    ),
    r"requires a valid client certificate|certificate required": (
        "give a client certificate, with sslcert=... and sslkey=..."
    ),
    r"certificate expired": "the client certificate has expired: renew what sslcert names",
    r"unknown ca|bad certificate|certificate unknown": (
        "the server trusts another authority: give the certificate that it issued as sslcert"
    ),
    r"certificate verify failed|root certificate file": (
        "sslrootcert must name the authority that has issued the server's certificate"
    ),
    r"does not match host name": "connect by a name that the server's certificate has",
    r"server does not support SSL|no encryption": (
        "server and client do not agree on TLS: connect with sslmode=verify-full to one that has it"
    ),
    r'server at "(127\.0\.0\.1|::1|localhost)".*(Connection refused|No such file)': (
        "start the server; one that `harvest dev up` has made starts by that"
    ),
    r"permission denied for (table|sequence|schema harvest)": (
        "give the role what it lacks, with `harvest outbox grant`"
    ),
}


def explained(error: psycopg.Error) -> str:
    """Return the fault and what to do, in a line; libpq quotes neither passwords nor keys."""
    said = one_line(error)
    for pattern, advice in _ADVICE.items():
        if re.search(pattern, said):
            return f"{said}; {advice}"
    return said
