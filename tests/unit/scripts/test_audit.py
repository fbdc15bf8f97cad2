"""What is pinned is compared with what the index lists."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.audit import PINNED, Pin, audit, read_pins

SOUND, GONE = "a" * 64, "b" * 64
PAGES: dict[str, str] = {}


class Index(BaseHTTPRequestHandler):
    """An index of packages that has the pages above."""

    def do_GET(self) -> None:
        """Serve a page."""
        page = PAGES.get(self.path)
        self.send_response(200 if page else 404)
        kind = "text/html" if (page or "").startswith("<") else "application/json"
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def index() -> Iterator[str]:
    """An index that knows nothing yet."""
    PAGES.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def lists(*, yanked: bool = False, ids: tuple[str, ...] = ()) -> None:
    """Have the index list one file, and vulnerabilities of it."""
    PAGES["/simple/it/"] = json.dumps({"files": [{"hashes": {"sha256": SOUND}, "yanked": yanked}]})
    told = [{"id": each, "fixed_in": ["1.1"]} for each in ids]
    PAGES["/pypi/it/1.0/json"] = json.dumps({"vulnerabilities": told})


def it(*hashes: str) -> list[Pin]:
    """Pin it."""
    return [Pin("it", "1.0", frozenset(hashes or (SOUND,)))]


def test_what_is_sound(index: str) -> None:
    """Nothing is found in what is listed as it was pinned."""
    lists()
    assert audit(index, it()) == (False, ["audit: 1 pins, 0 findings"])


def test_what_was_replaced(index: str) -> None:
    """A file whose hash is listed no longer is found."""
    lists()
    assert audit(index, it(SOUND, GONE))[1][0] == "it==1.0: 1 of 2 files are listed no longer"


def test_what_was_yanked(index: str) -> None:
    """A file that its author took back is found."""
    lists(yanked=True)
    assert audit(index, it())[1][0] == "it==1.0: was yanked"


def test_what_is_vulnerable(index: str) -> None:
    """A known hole is found, and in which version it is mended."""
    lists(ids=("PYSEC-1",))
    assert audit(index, it()) == (
        True,
        ["it==1.0: PYSEC-1, mended in 1.1", "audit: 1 pins, 1 findings"],
    )


def test_an_index_of_pages(index: str) -> None:
    """An index that tells no JSON is read, and what it does not tell is said."""
    PAGES["/simple/it/"] = f'<a href="it-1.0.whl#sha256={SOUND}" data-yanked="">it-1.0.whl</a>'
    found, lines = audit(index, it())
    assert found
    assert lines[0] == "it==1.0: was yanked"
    assert lines[-1] == "audit: the index does not tell the vulnerabilities of 1 pins"


def test_an_index_that_does_not_answer(index: str) -> None:
    """It finds nothing, and that is said."""
    found, lines = audit(index, it())
    assert not found
    assert "audit: the index does not tell the files of 1 pins" in lines


def test_all_pins_are_read() -> None:
    """Each requirement has its version and its hashes."""
    text = PINNED.read_text()
    pins = list(read_pins(text))
    assert len(pins) == sum(line[:1].isalnum() for line in text.splitlines())
    assert sum(len(pin.hashes) for pin in pins) == text.count("--hash=")
