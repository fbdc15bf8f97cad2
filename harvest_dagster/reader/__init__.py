"""The reader: topics of Kafka, each message once, into a store of the user's own."""

from harvest_dagster.reader.postgres_store import PostgresStore
from harvest_dagster.reader.read_batch import ReadBatch
from harvest_dagster.reader.reader import Reader
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.reader.reader_yaml import ReaderOptions
from harvest_dagster.reader.received import ReceivedMessage

__all__ = [
    "PostgresStore",
    "ReadBatch",
    "Reader",
    "ReaderConfig",
    "ReaderOptions",
    "ReceivedMessage",
]
