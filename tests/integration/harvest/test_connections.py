"""A harvest's connections to PostgreSQL."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.harvest.clients import connect
from tests.support.account import judge, read

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

SELECTABLE = 1024
"""`select` takes no descriptor from this number on."""


def silence_ms(place: Place, dsn: str) -> int:
    """Tell how long the socket of a connection bears with a peer that says nothing."""
    with connect(place.config(postgres=dsn), "test") as connection:
        own = socket.socket(fileno=os.dup(connection.pgconn.socket))
        with own:
            assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            return own.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)


def test_a_server_that_is_gone_without_a_word(place: Place) -> None:
    """A machine that vanishes is given up within seconds, or when the user has said."""
    assert silence_ms(place, place.postgres) == 10_000
    joined = "&" if "?" in place.postgres else "?"
    assert silence_ms(place, f"{place.postgres}{joined}tcp_user_timeout=45000") == 45_000


@pytest.fixture
def _many_files() -> Iterator[None]:
    """Have more files open than `select` can tell apart."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * SELECTABLE:
        pytest.skip(f"no more than {hard} files can be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * SELECTABLE), hard))
    with ExitStack() as stack:
        opened = 0
        while opened < SELECTABLE:
            opened = stack.enter_context(Path(os.devnull).open("rb")).fileno()
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_many_files")
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
def test_a_program_of_many_files(place: Place, start_tour: StartTour, delivery: str) -> None:
    """In a program that has very many sockets, it harvests as in any other."""
    place.put(500)
    start_tour(place.config(delivery=delivery), place.lease())
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), delivery)
