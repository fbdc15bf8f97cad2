"""TLS in front of PostgreSQL, which its wheel was built without: a program of its own.

    python tls_proxy.py PORT SOCKET CERTIFICATE KEY

It listens on 127.0.0.1, agrees on TLS as PostgreSQL's protocol has it, and passes all that
follows on to PostgreSQL's unix socket. It knows the standard library only, and so starts at once.
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

_FIELDS = b"SFATAL\0VFATAL\0C28000\0Mthis server wants TLS: connect with sslmode=verify-full\0\0"
REFUSAL = b"E" + struct.pack("!i", len(_FIELDS) + 4) + _FIELDS


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
            return b""
        # A request to cancel has no password in it, and libpq sends it in clear.
        if head == CANCEL:
            return head
        writer.write(REFUSAL)
        return None

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


async def _main(port: str, socket: str, certificate: str, key: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    # A socket's path must be short, and its name alone always is.
    os.chdir(Path(socket).parent)
    proxy = Proxy(Path(socket).name, context)
    server = await asyncio.start_server(proxy.serve, HOST, int(port), limit=CHUNK)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
