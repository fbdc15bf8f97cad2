"""TLS in front of PostgreSQL, which its wheel was built without: a program of its own.

    python tls_proxy.py PORT MTLS_PORT SOCKET CERTIFICATE KEY CA

It listens on 127.0.0.1, agrees on TLS as PostgreSQL's protocol has it, and passes all that
follows on to PostgreSQL's unix socket, which asks for a password. On MTLS_PORT a client must show a
certificate that CA has issued as well, as under `clientcert=verify-ca` of a pg_hba.conf. It knows
the standard library only, and so starts at once.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import struct
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
CHUNK = 64 * 1024

CANCEL = struct.pack("!ii", 16, 80877102)
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSS_REQUEST = struct.pack("!ii", 8, 80877104)


def _refusal(why: bytes) -> bytes:
    fields = b"SFATAL\0VFATAL\0C28000\0M" + why + b"\0\0"
    return b"E" + struct.pack("!i", len(fields) + 4) + fields


NO_TLS = _refusal(b"this server wants TLS: connect with sslmode=verify-full")
NO_CERTIFICATE = _refusal(b"connection requires a valid client certificate")


class Telling(ssl.SSLObject):
    """Has a client told why its certificate is refused: asyncio alone would just hang up."""

    def do_handshake(self) -> None:
        """Go on with the handshake; what asks for more to be read is sent what there is first."""
        try:
            super().do_handshake()
        except ssl.SSLCertVerificationError:
            raise ssl.SSLWantReadError from None


class Proxy:
    """Connections of clients, each with one of its own to PostgreSQL."""

    def __init__(self, socket: str, context: ssl.SSLContext) -> None:
        self._socket = socket
        self._context = context

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one client, until either side closes."""
        with suppress(OSError, EOFError):
            head = await self._agree(reader, writer)
            if head is not None:
                await self._connect(head, reader, writer)
        writer.close()

    async def _agree(self, reader: StreamReader, writer: StreamWriter) -> bytes | None:
        """Agree on TLS; tell what was read of a message that PostgreSQL is to have."""
        head = await reader.readexactly(len(SSL_REQUEST))
        if head == GSS_REQUEST:
            writer.write(b"N")
            head = await reader.readexactly(len(SSL_REQUEST))
        if head == SSL_REQUEST:
            writer.write(b"S")
            await writer.start_tls(self._context)
            return None if await self._lacks_certificate(reader, writer) else b""
        # A request to cancel has no password in it, and libpq sends it in clear.
        if head == CANCEL:
            return head
        writer.write(NO_TLS)
        return None

    async def _lacks_certificate(self, reader: StreamReader, writer: StreamWriter) -> bool:
        wanted = self._context.verify_mode is not ssl.CERT_NONE
        if not wanted or writer.get_extra_info("peercert"):
            return False
        await reader.read(CHUNK)  # who it is: the answer would be lost if that were not read
        writer.write(NO_CERTIFICATE)
        return True

    async def _connect(self, head: bytes, reader: StreamReader, writer: StreamWriter) -> None:
        their_reader, their_writer = await asyncio.open_unix_connection(self._socket)
        their_writer.write(head)
        ways = [_pump(reader, their_writer), _pump(their_reader, writer)]
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            their_writer.close()


async def _pump(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()


def _context(certificate: str, key: str, ca: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.sslobject_class = Telling
    context.load_cert_chain(certificate, key)
    if ca is not None:
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


async def _serve(port: str, socket: str, context: ssl.SSLContext) -> None:
    proxy = Proxy(socket, context)
    server = await asyncio.start_server(proxy.serve, HOST, int(port), limit=CHUNK)
    await server.serve_forever()


async def _main(
    port: str, mtls_port: str, socket: str, certificate: str, key: str, ca: str
) -> None:
    doors = {port: _context(certificate, key), mtls_port: _context(certificate, key, ca)}
    # A socket's path must be short, and its name alone always is.
    os.chdir(Path(socket).parent)
    name = Path(socket).name
    await asyncio.gather(*(_serve(door, name, context) for door, context in doors.items()))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
