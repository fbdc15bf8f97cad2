"""Modules of a test's own to download, and a Java that brings what the test says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from harvest_dagster.embedded.ivy import Module

_JAVA = """#!/bin/sh
while [ "$1" != -retrieve ]; do shift; done
mkdir -p "$(dirname "$2")"
cp -r "{brought}/." "$(dirname "$2")"
"""


def module(folder: Path, jars: Mapping[str, bytes]) -> Module:
    """Describe a module of these jars in a folder."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in jars.items()}
    lines = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    (folder / "small.ivy.xml").write_text("<ivy-module/>")
    (folder / "small.sha256").write_text(lines)
    return Module("small", "A small one", folder=folder)


def java(folder: Path, jars: Mapping[str, bytes]) -> str:
    """Write a program that brings these jars as Ivy does, and return its path."""
    brought, program = folder / "brought", folder / "java"
    brought.mkdir()
    for name, content in jars.items():
        (brought / name).write_bytes(content)
    program.write_text(_JAVA.format(brought=brought))
    program.chmod(0o700)
    return str(program)
