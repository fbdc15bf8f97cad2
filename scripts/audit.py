"""Ask the package index whether what is pinned is still what it was; called by `make audit`.

It holds the licences of that, and of what is downloaded as jars and wheels, to a list as well.

For each pin of `requirements/dev.txt`: are its files still listed under the same hashes, was it
yanked, and does the index know of a vulnerability? The index is the one that pip or uv is
configured with. The exit code is 1 if something was found. If the index does not answer, that is no
finding, and a line says so.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from pip._internal.models.index import PyPI

from scripts import licences

PINNED = Path(__file__).resolve().parent.parent / "requirements" / "dev.txt"
_PIN = re.compile(r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;\\]+)((?:.*\\\n)*.*)$", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_LINK = re.compile(r"<a\b[^>]*#sha256=([0-9a-f]{64})[^>]*>")
_SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_SIMPLE_JSON}, application/json;q=0.9, text/html;q=0.1"
_CONFIGURED = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
_SECONDS = 20
_AT_ONCE = 16


class Pin(NamedTuple):
    """A version of a package, and the files that it may be installed from."""

    name: str
    version: str
    hashes: frozenset[str]


class Answer(NamedTuple):
    """What is wrong with a pin, and what the index did not answer."""

    findings: list[str]
    untold: set[str]


def main() -> None:
    """Ask about all pins, judge all licences, and exit with 1 if something is wrong with one."""
    pins = list(read_pins(PINNED.read_text(encoding="utf-8")))
    wrong = licences.findings(pin.name for pin in pins)
    found, lines = audit(configured_index(), pins)
    lines.append(f"audit: {len(wrong)} licences that may not be used, or are not known")
    print("\n".join([*wrong, *lines]))
    sys.exit(1 if found or wrong else 0)


def audit(index: str, pins: list[Pin]) -> tuple[bool, list[str]]:
    """Return whether anything was found, and the lines to print."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda pin: ask(index, pin), pins))
    findings = [line for answer in answers for line in answer.findings]
    lines = [*findings, f"audit: {len(pins)} pins, {len(findings)} findings"]
    for what in ("files", "vulnerabilities"):
        untold = sum(what in answer.untold for answer in answers)
        if untold:
            lines.append(f"audit: the index does not tell the {what} of {untold} pins")
    return bool(findings), lines


def ask(index: str, pin: Pin) -> Answer:
    """Ask about one pin."""
    findings: list[str] = []
    untold: set[str] = set()
    for what, look in (("files", _files), ("vulnerabilities", _vulnerabilities)):
        try:
            findings += (f"{pin.name}=={pin.version}: {line}" for line in look(index, pin))
        except (OSError, ValueError, LookupError):
            untold.add(what)
    return Answer(findings, untold)


def read_pins(text: str) -> Iterator[Pin]:
    """Yield the pins of a file of requirements with hashes."""
    for name, version, rest in _PIN.findall(text):
        yield Pin(re.sub(r"[-_.]+", "-", name).lower(), version, frozenset(_HASH.findall(rest)))


def configured_index() -> str:
    """Return the URL of the index that pip or uv installs from."""
    given = (os.environ.get(name) for name in _CONFIGURED)
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return next(filter(None, [*given, said]), PyPI.simple_url).rstrip("/")


def _files(index: str, pin: Pin) -> Iterable[str]:
    kind, body = _get(f"{index}/{pin.name}/")
    listed = _listed(body) if "json" in kind else _linked(body)
    gone = pin.hashes - listed.keys()
    if gone:
        yield f"{len(gone)} of {len(pin.hashes)} files are listed no longer"
    if any(listed.get(each) for each in pin.hashes):
        yield "was yanked"


def _listed(body: str) -> dict[str, bool]:
    """Return for each hash whether its file was yanked."""
    files = json.loads(body)["files"]
    return {each["hashes"].get("sha256", ""): bool(each.get("yanked")) for each in files}


def _linked(body: str) -> dict[str, bool]:
    return {found[1]: "data-yanked" in found[0] for found in _LINK.finditer(body)}


def _vulnerabilities(index: str, pin: Pin) -> Iterable[str]:
    _, body = _get(f"{index.removesuffix('/simple')}/pypi/{pin.name}/{pin.version}/json")
    told: list[dict[str, Any]] = json.loads(body)["vulnerabilities"]
    for each in told:
        if not each.get("withdrawn"):
            mended = ", ".join(each.get("fixed_in") or ["no version yet"])
            yield f"{each['id']}, mended in {mended}"


def _get(url: str) -> tuple[str, str]:
    """Return type and text of a page; urllib needs user and password apart from the URL."""
    parts = urlsplit(url)
    request = Request(  # noqa: S310 - what pip installs from
        parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), headers={"Accept": _ACCEPT}
    )
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")
    try:
        with urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310 - likewise
            return answer.headers.get("Content-Type", ""), answer.read().decode()
    except HTTPError as refused:
        refused.close()
        raise


if __name__ == "__main__":
    main()
