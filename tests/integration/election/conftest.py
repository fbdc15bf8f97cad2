"""Candidates in this process and in others, and a listener that remembers."""

from tests.support.candidates import free, members, settings, spawn, start

__all__ = ["free", "members", "settings", "spawn", "start"]
