"""The bench's proxy does to a connection what it is told, and to no other."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.torture.links import Links


class Echo(socketserver.BaseRequestHandler):
    """Sends back what it gets."""

    def handle(self) -> None:
        """Serve a client."""
        with suppress(ConnectionError):
            while content := self.request.recv(100):
                self.request.sendall(content)


@pytest.fixture
def links(tmp_path: Path) -> Iterator[Links]:
    """Two ways to an echo."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        links = Links(f"postgresql://user:word@127.0.0.1:{port}/base", ["one", "two"], tmp_path)
        yield links
        links.close()
        server.shutdown()


def connected(links: Links, name: str) -> socket.socket:
    """Connect, and see that it works."""
    way = unproved(links, name)
    assert echoed(way)
    return way


def unproved(links: Links, name: str) -> socket.socket:
    """Connect."""
    return socket.create_connection(("127.0.0.1", urlsplit(links.url(name)).port or 0), 5)


def echoed(way: socket.socket, seconds: float = 5.0) -> bool:
    """Tell whether something comes back; if it is cut, that raises."""
    way.settimeout(seconds)
    way.sendall(b"?")
    try:
        content = way.recv(100)
    except TimeoutError:
        return False
    if not content:
        raise ConnectionResetError
    return True


def until_cut(way: socket.socket) -> bool:
    """Use a connection until it is cut; tell whether it ever was."""
    end = time.monotonic() + 5
    try:
        while time.monotonic() < end:
            echoed(way)
    except ConnectionError:
        return True
    return False


def test_the_url_differs_in_its_port_alone(links: Links) -> None:
    """Whoever connects through the proxy does so with the same name and database."""
    assert links.url("one").startswith("postgresql://user:word@127.0.0.1:")
    assert links.url("one").endswith("/base")
    assert links.url("one") != links.url("two")


def test_cut(links: Links) -> None:
    """Connections that are cut are gone; new ones can be made, and others go on."""
    with connected(links, "one") as one, connected(links, "two") as two:
        links.disturb("one", "cut", 0)
        assert until_cut(one)
        assert echoed(two)
    connected(links, "one").close()


def test_refuse(links: Links) -> None:
    """Nobody connects while connections are refused, and then it can be done."""
    with connected(links, "one") as one:
        links.disturb("one", "refuse", 0)
        assert until_cut(one)
    with pytest.raises(ConnectionError), unproved(links, "one") as one:
        echoed(one)
    links.heal("one")
    connected(links, "two").close()


def test_stall(links: Links) -> None:
    """What is sent while a connection stalls arrives when it is healed."""
    with connected(links, "one") as one, connected(links, "two") as two:
        links.disturb("one", "stall", 0)
        while echoed(one, 0.2):
            pass
        assert echoed(two)
        links.heal("one")
        one.settimeout(5)
        assert one.recv(100)


def test_delay(links: Links) -> None:
    """What is delayed takes its time, each way."""
    with connected(links, "one") as one:
        links.disturb("one", "delay", 0.2)
        while echoed(one, 0.2):
            pass
        one.settimeout(5)
        assert one.recv(100)
        links.heal("one")
