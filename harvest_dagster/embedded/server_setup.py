"""Make what parts of a home need before they can start, where it is missing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from harvest_dagster.embedded import certificates, home_state, ports
from harvest_dagster.embedded.home_folder import check_space, make_private
from harvest_dagster.embedded.server_logs import log_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harvest_dagster.embedded.part import Part, Say, Site


def set_up(site: Site, parts: Sequence[Part], say: Say) -> None:
    """Make these parts ready to start."""
    for part in parts:
        _check_ports(part.ports(site.state))
    make_private(log_of(site.home, "").parent)
    for part in parts:
        part.have_programs(site, say)
    # Before any data is made, for the passwords of that data are in the state.
    home_state.save(site.home, site.state)
    _make(site, parts, say)


def _check_ports(doors: dict[str, int]) -> None:
    for door, port in doors.items():
        if not ports.becomes_free(port):
            raise EmbeddedError(
                f"port {port} of {door} is taken by another program: stop that program,"
                " or choose new ports with `harvest dev up --new-ports`"
            )


def _make(site: Site, parts: Sequence[Part], say: Say) -> None:
    new = [part for part in parts if not part.is_set_up(site.home)]
    if new:
        check_space(site.home)
        say(f"setting up {site.home}")
    if site.state.secure and not certificates.folder(site.home).is_dir():
        certificates.issue(site.home)
    for part in parts:
        part.configure(site)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda part: part.set_up(site), new))
