"""Whatever texts come from outside, a line of ours stays one line, and says who wrote it."""

from __future__ import annotations

import json
import logging
import re
import uuid
from contextlib import redirect_stderr
from datetime import UTC, datetime

import psycopg
import pytest
from confluent_kafka import KafkaError
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from harvest_dagster.cli.console import Form, logged
from harvest_dagster.cli.history import print_events
from harvest_dagster.cli.lease_commands import _cells
from harvest_dagster.cli.show import print_table
from harvest_dagster.errors import ConfigError, HarvestError, MessageError
from harvest_dagster.harvest.backlog_metrics import HarvestCollector
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.kafka.refusals import explained as explained_by_kafka
from harvest_dagster.ledger.events import Event
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.outbox import Message
from harvest_dagster.outbox.lines import LineReader
from harvest_dagster.postgres.names import TableName, quoted
from harvest_dagster.postgres.refusals import explained as explained_by_postgres
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.text import one_line, printable
from tests.support.hostile import TEXTS
from tests.support.terminal import Terminal

LOGGER = logging.getLogger("harvest_dagster.test")
NOW = datetime.now(UTC)


@pytest.fixture(params=TEXTS, ids=ascii)
def text(request: pytest.FixtureRequest) -> str:
    """Each of them."""
    found: str = request.param
    return found


def event(text: str) -> Event:
    """An event with the text wherever an event may have one."""
    return Event(1, NOW, text, 0, 1, uuid.uuid4(), text, {text: text, "holder": text, "x": [text]})


def is_a_line(shown: str) -> bool:
    """Tell whether it is one line, of which a terminal shows every character."""
    return shown.endswith("\n") and shown[:-1].isprintable()


def test_log_of_text(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A log line for people stays one."""
    with logged("text", logging.INFO):
        LOGGER.warning("held: %s", text)
    assert is_a_line(capsys.readouterr().err)


def test_log_of_json(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A log line for programs stays one, and has the text as it was."""
    with logged("json", logging.INFO):
        LOGGER.warning("held: %s", text)
    line = capsys.readouterr().err
    assert is_a_line(line)
    assert line.isascii()
    assert json.loads(line)["message"] == f"held: {text}"


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_of_an_exception(text: str, form: Form, capsys: pytest.CaptureFixture[str]) -> None:
    """No line of a traceback looks like one of the log."""
    with logged(form, logging.INFO):
        LOGGER.error("failed", exc_info=ValueError(text))
    first, *rest = capsys.readouterr().err.split("\n")[:-1]
    assert first.isprintable()
    assert all(line.startswith("  ") and line.isprintable() for line in rest)


def test_live_line() -> None:
    """On a terminal too, the only escapes are ours."""
    terminal = Terminal()
    with redirect_stderr(terminal), logged("text", logging.INFO):
        for text in TEXTS:
            LOGGER.info("%s", text)
    lines = terminal.getvalue().replace("\r\x1b[K", "").splitlines()
    assert len(lines) == len(TEXTS)
    assert all(line.isprintable() for line in lines)


def test_tables_on_a_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table has as many lines as rows."""
    lease = LeaseRow(text, text, 0, 1, uuid.uuid4(), text, NOW, False, 1.0, 1.0, 1.0, False)
    print_table(("a", "b"), [(text, 1), (2, text)])
    print_table(("lease",) * 6, [_cells(lease)])
    print_events([event(text)], as_json=False)
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 3 + 2 + 2 + 1
    assert all(line.isprintable() for line in lines)


def test_events_as_json(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get the text as it was, in ASCII alone."""
    print_events([event(text)], as_json=True)
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown)[0]["kind"] == text


def test_errors(text: str) -> None:
    """What PostgreSQL and Kafka say of a text is one line, however they quote it."""
    assert one_line(HarvestError(text)).isprintable()
    assert explained_by_postgres(psycopg.OperationalError(text)).isprintable()
    assert explained_by_kafka(KafkaError(KafkaError._FAIL, text)).isprintable()  # noqa: SLF001 - the client's own code


def test_nothing_is_hidden(text: str) -> None:
    """What can be printed stands as it was, and all else as an escape that tells it."""
    shown = printable(text)
    assert (shown == text) == text.isprintable()
    assert re.sub(r"\\(x..|u....|U.{8}|[nrt\\])", "", shown).isprintable()


def test_topics(text: str) -> None:
    """No such text is a topic's name, unless it is a harmless one; the refusal is one line."""
    try:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", Message(text, "k", "v").topic)
    except MessageError as error:
        assert str(error).isprintable()  # noqa: PT017 - some are legal


def test_keys_values_and_headers(text: str) -> None:
    """They are taken as they are: nothing of them is interpreted."""
    made = Message("t", text, text, {text: text})
    given = text.encode()
    assert (made.key, made.value, made.headers) == (given, given, ((text, given),))
    line = json.dumps({"topic": "t", "key": text, "value": text, "headers": {text: text}})
    assert list(LineReader([line])) == [made]


def test_fields_of_json_lines(text: str) -> None:
    """A field that there is not is refused in one line."""
    with pytest.raises(MessageError) as error:
        list(LineReader([json.dumps({text: 1})]))
    assert str(error.value).isprintable()


@pytest.mark.parametrize("quotes", [False, True])
def test_table_names(text: str, quotes: bool) -> None:
    """A name is refused in one line, or is an identifier that is read as the same again."""
    try:
        name = TableName.parse(quoted(text) if quotes else text)
    except ConfigError as error:
        assert str(error).isprintable()  # noqa: PT017 - some are legal
    else:
        assert re.fullmatch(r'"(?:[^"]|"")+"(?:\."(?:[^"]|"")+")?', name.sql)
        assert TableName.parse(name.sql) == name


@pytest.mark.parametrize(
    "field", ["outbox", "name", "leader_topic", "leader_group", "delivery", "metrics", "postgres"]
)
def test_config(text: str, field: str) -> None:
    """A config takes what can be printed and fits, and refuses the rest in one line."""
    given = {"base_kafka": {"bootstrap.servers": "a:1"}, "postgres": "host=a", field: text}
    try:
        made = HarvestConfig.model_validate(given)
    except ConfigError as error:
        assert str(error).isprintable()  # noqa: PT017 - some are legal
    else:
        assert made.name.isprintable()
        assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", made.leader_topic)
        assert re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", made.leader_group)


def test_sparks_options(text: str) -> None:
    """As a staging table's name, or an option's, it is refused in a line."""
    for given in ({"into": text}, {f"{text}!": "x"}):
        with pytest.raises(ConfigError) as error:
            SourceOptions.read(given)
        assert str(error.value).isprintable()


def test_labels(text: str) -> None:
    """A harvest's name, where it is one, is a label's value and nothing else."""
    try:
        config = HarvestConfig.model_validate(
            {"base_kafka": {"bootstrap.servers": "a:1"}, "postgres": "host=a", "name": text}
        )
    except ConfigError:
        return
    registry = CollectorRegistry()
    registry.register(HarvestCollector(Harvest(config)))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = [sample for family in families for sample in family.samples]
    assert {sample.labels["name"] for sample in samples} == {text}
    assert sum(sample.name == "harvest_leader" for sample in samples) == 1
