"""Every error that harvest_dagster raises on purpose, in one tree.

    HarvestError
    ├── ConfigError       a setting is missing or wrong
    ├── MessageError      a message that Kafka, or the outbox's table, could never take; no UUID
    ├── OutboxError       the outbox's table is missing, or is not as it must be
    ├── TransactionError  stash was called where no transaction of the caller's can be open
    ├── EmbeddedError     PostgreSQL or Kafka of this machine could not be set up or started
    ├── KafkaError        Kafka could not be reached, or refused what a client of ours asked
    ├── ClockError        this machine's clock is so wrong that Kafka refuses its messages
    ├── FencedError       another leader has the lease: nothing more may be written
    ├── RivalError        another leads the same table, or the name is of something else
    ├── ReaderError       a reader can't go on: records are gone, or one can't be read or applied
    └── HarvestStateError a harvest was asked for what it can't do in its state

A message says what is wrong and what to do next; the command line prints just that line.
"""

from __future__ import annotations


class HarvestError(Exception):
    """Root of the tree: catch this to catch all of ours."""


class ConfigError(HarvestError):
    """A setting is missing or wrong; the message names the key and what it may be."""


class MessageError(HarvestError, ValueError):
    """A message that could never be published, or whose UUID is none; it names field and limit."""


class OutboxError(HarvestError):
    """The outbox's table is missing, or is not as it must be."""


class TransactionError(HarvestError):
    """Stash was called where no transaction of the caller's can be open."""


class EmbeddedError(HarvestError):
    """PostgreSQL or Kafka of this machine could not be set up or started."""


class KafkaError(HarvestError):
    """Kafka could not be reached, or refused what a client of ours asked."""


class ClockError(HarvestError):
    """The clock of this machine is so wrong that Kafka refuses the messages it stamps."""


class FencedError(HarvestError):
    """Another leader has the lease: nothing more may be written under the old epoch."""


class RivalError(HarvestError):
    """Another leads the same table, so each message would be published twice; or has the name."""


class ReaderError(HarvestError):
    """A reader can't go on by itself: records are gone, or one can't be read or applied."""


class HarvestStateError(HarvestError):
    """A harvest was asked for what it can't do in the state that it is in."""
