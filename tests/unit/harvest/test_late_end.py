"""What a producer's log says, and whether an end of its transaction may still be on its way."""

from __future__ import annotations

import pytest

from harvest_dagster.harvest.late_end import Ear, may_come_late

COORDINATOR = "[thrd:TxnCoordinator]: TxnCoordinator/1: "
REFUSED = "Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
CLOSED = "127.0.0.1:9092: Disconnected: connection closed by peer (after 278ms in state UP)"


@pytest.mark.parametrize(
    ("facility", "line"),
    [
        ("FAIL", f"{COORDINATOR}{CLOSED}"),
        ("FAIL", f"{COORDINATOR}Send failed: Connection reset (after 9ms in state REAUTH)"),
        ("FAIL", f"{COORDINATOR}1 request(s) timed out: disconnect (after 2000ms in state UP)"),
        ("REQTMOUT", f"{COORDINATOR}Timed out EndTxnRequest in flight (after 2000ms, timeout #0)"),
    ],
)
def test_the_coordinator_is_lost(facility: str, line: str) -> None:
    """A connection to the coordinator that was in use, and is gone, or has not answered in time."""
    assert may_come_late(facility, line)


@pytest.mark.parametrize(
    ("facility", "line"),
    [
        ("FAIL", f"[thrd:127.0.0.1:9092/2]: 127.0.0.1:9092/2: {CLOSED}"),
        ("FAIL", f"[thrd:127.0.0.1:9092/2]: 127.0.0.1:9092/2: {REFUSED}"),
        ("FAIL", f"{COORDINATOR}{REFUSED}"),
        ("FAIL", f"{COORDINATOR}Handshake failed (after 5ms in state SSL_HANDSHAKE)"),
        ("FAIL", f"{COORDINATOR}Disconnected (after 5ms in state APIVERSION_QUERY)"),
        ("FAIL", f"{COORDINATOR}Authentication failed (after 5ms in state AUTH_REQ)"),
        ("RETRY", f"{COORDINATOR}Moved 1 retry buffer(s) to output queue"),
    ],
)
def test_nothing_was_on_its_way(facility: str, line: str) -> None:
    """Another broker's connection, one that was not made yet, and lines about something else."""
    assert not may_come_late(facility, line)


def test_a_user_closes_idle_connections_when_it_suits() -> None:
    """All but that is ours to set, so that the log says what must be heard."""
    settings = Ear().settings({"connections.max.idle.ms": 1000, "log.connection.close": False})
    assert "connections.max.idle.ms" not in settings
    assert settings["log.connection.close"] is True
