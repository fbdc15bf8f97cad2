from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from harvest_dagster import ConfigError
from harvest_dagster.harvest.reaper_yaml import load_reaper_yaml

SECRET = "hunter2"  # noqa: S105 - what must not be shown
LIMITS = "harvest.limits"
ONE_OF = "Input should be 'exactly_once', 'at_least_once' or 'sequenced'"
AT_LEAST = "Input should be greater than or equal to"
LEAST = """\
harvest:
  baseKafkaConfig: {bootstrap.servers: "localhost:9092"}
  dataSource: host=localhost
"""


def refusal(text: str | bytes) -> str:
    """What is said of a reaper.yaml that is refused: one line, no secret, after the file's name."""
    Path("reaper.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as error:
        load_reaper_yaml("reaper.yaml")
    said = str(error.value)
    assert said.isprintable()
    assert SECRET not in "".join(traceback.format_exception(error.value))
    assert error.value.__context__ is None
    return said.removeprefix("reaper.yaml: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("# nothing\n", "it is empty"),
        ("---\n", "it is empty"),
        ("harvest", "the file: it must be a mapping, of lines as `key: value`"),
        ("- harvest", "the file: it must be a mapping, of lines as `key: value`"),
        ("harvest:\n\tname: x", "line 2: there is a tab: indent with spaces"),
        ("harvest: {", "line 1: expected the node content, but found '<stream end>'"),
        ("harvest: [a", "line 1: expected ',' or ']', but got '<stream end>'"),
        ("harvest: @a", "line 1: found character '@' that cannot start any token"),
        ("harvest: x: y", "line 1: mapping values are not allowed here"),
        (f"harvest: *{SECRET}", "line 1: found undefined alias ..."),
        (f"harvest: !a!{SECRET} x", "line 1: found undefined tag handle ..."),
        ("a: 1\n---\nb: 2", "line 2: found another document"),
        ('harvest: "\\U00110000"', "it has characters that YAML forbids, or nests too deep"),
        ("harvest: \x00", "it has characters that YAML forbids, or nests too deep"),
        ("[" * 10_000, "it has characters that YAML forbids, or nests too deep"),
        (b"\xff\xfe", "it can't be read: it is no text in UTF-8"),
        (
            "harvest:\n  <<: 5",
            "line 2: expected a mapping or list of mappings for merging, but found scalar",
        ),
    ],
)
def test_no_mapping(text: str | bytes, said: str) -> None:
    """What is no YAML, or none that could be a reaper.yaml, is refused in one line."""
    assert refusal(text) == said


def test_no_file() -> None:
    """A file that is not there is refused by its name."""
    with pytest.raises(ConfigError) as error:
        load_reaper_yaml("reaper.yaml")
    assert str(error.value) == "reaper.yaml: it can't be read: No such file or directory"


@pytest.mark.parametrize("path", [".", "a\0b"])
def test_no_text(path: str) -> None:
    """What can't be a file is refused too."""
    with pytest.raises(ConfigError, match="it can't be read"):
        load_reaper_yaml(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("harvst: 1", "harvst (line 1): no such key; the nearest is harvest"),
        ("leaderTopic: x", "leaderTopic (line 1): no such key; the nearest is harvest.leaderTopic"),
        (
            "harvest:\n  leaderGroupId: x",
            "harvest.leaderGroupId (line 2): no such key; the nearest is harvest.leaderGroupID",
        ),
        (
            "harvest:\n  name: x\n  maxInFlightRecords: 5",
            (
                "harvest.maxInFlightRecords (line 3): no such key;"
                " the nearest is harvest.limits.maxInFlightRecords"
            ),
        ),
        (
            "harvest:\n  limits:\n    DRAININTERVAL: 5",
            (
                "harvest.limits.DRAININTERVAL (line 3): no such key;"
                " the nearest is harvest.limits.drainInterval"
            ),
        ),
        ("logging: {lvl: x}", "logging.lvl (line 1): no such key; the nearest is logging.level"),
        ('"harves\\n": 1', r"'harves\n' (line 1): no such key; the nearest is harvest"),
        ("? [a]\n: 1", "? (line 1): no such key; the nearest is logging.level"),
    ],
)
def test_unknown_key(text: str, said: str) -> None:
    """A key that there is not is refused with its path, its line and the nearest that there is."""
    assert refusal(text) == said


def test_double_key() -> None:
    """A key that is there twice is refused, wherever it is."""
    assert refusal("harvest: {}\nharvest: {}") == "harvest (line 2): it is in line 1 already"
    assert refusal(f"harvest:\n  baseKafkaConfig:\n    a: 1\n    a: {SECRET}") == (
        "harvest.baseKafkaConfig.a (line 4): it is in line 3 already"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("name: [x]", "harvest.name (line 4): it must be one value, and no list or mapping"),
        ("limits: 5", "harvest.limits (line 4): it must be a mapping, of lines as `key: value`"),
        (
            "producerKafkaConfig: [x]",
            "harvest.producerKafkaConfig (line 4): it must be a mapping, of lines as `key: value`",
        ),
        (
            f"producerKafkaConfig: {{sasl.password: [{SECRET}]}}",
            (
                "harvest.producerKafkaConfig.sasl.password (line 4): it must be one value, and"
                " no list or mapping"
            ),
        ),
        (
            f"producerKafkaConfig: {{a: !!int {SECRET}}}",
            "harvest.producerKafkaConfig.a (line 4): it is not of the type that its tag says",
        ),
        ("shards: 0", "harvest.shards (line 4): Input should be greater than or equal to 1"),
        (
            f"shards: {SECRET}",
            (
                "harvest.shards (line 4): Input should be a valid integer, unable to parse"
                " string as an integer"
            ),
        ),
        (
            "delivery: twice",
            f"harvest.delivery (line 4): {ONE_OF}",
        ),
        (
            "retention: 100",
            (
                "harvest.retention (line 4): it lacks its unit: write 100ms, 5s or 1h30m, of"
                " ns, us, ms, s, m and h"
            ),
        ),
        (
            "limits: {heartbeatTimeout: -1s}",
            "harvest.limits.heartbeatTimeout (line 4): it must be 1ms or more",
        ),
        ("limits: {sendBuffer: -1}", f"{LIMITS}.sendBuffer (line 4): {AT_LEAST} 0"),
        ("limits: {sendConcurrency: 0}", f"{LIMITS}.sendConcurrency (line 4): {AT_LEAST} 1"),
        ("limits: {markBackoff: -1s}", f"{LIMITS}.markBackoff (line 4): it must be 0s or more"),
        ("limits: {drainInterval: 0}", f"{LIMITS}.drainInterval (line 4): it must be 1ms or more"),
        ("limits: {pollDuration: 0}", f"{LIMITS}.pollDuration (line 4): it must be 1ms or more"),
        (
            "limits: {maxPollInterval: 99ms}",
            (
                "harvest.limits.maxPollInterval (line 4): 99ms is less than the 100ms that must"
                " pass between two polls; its default is half the heartbeat's timeout"
            ),
        ),
        (
            "limits: {heartbeatTimeout: 150ms}",
            (
                "harvest.limits.maxPollInterval: 75ms is less than the 100ms that must"
                " pass between two polls; its default is half the heartbeat's timeout"
            ),
        ),
        (
            "limits: {queueTimeout: 1s, drainTimeout: 1s}",
            (
                "harvest.limits.drainTimeout (line 4): it is harvest.limits.queueTimeout (line 4)"
                " too; give one of the two"
            ),
        ),
        (
            "limits: {minPollInterval: 3s}",
            (
                "harvest.limits.maxPollInterval: 2.5s is less than the 3s that must pass"
                " between two polls; its default is half the heartbeat's timeout"
            ),
        ),
        (
            "limits: {markQueryRecords: 11, maxInFlightRecords: 10}",
            (
                "harvest.limits.markQueryRecords (line 4): 11 is more than the 10 records that"
                " may be in flight"
            ),
        ),
        (
            f"outboxTable: {SECRET}!",
            (
                "harvest.outboxTable (line 4): this is no table name: write table or schema.table,"
                " quoted where SQL needs it"
            ),
        ),
        (
            "name: a-${UNSET}",
            "harvest.name (line 4): the environment has no variable UNSET",
        ),
        (
            "producerKafkaConfig: {sasl.password: '${UNSET}'}",
            (
                "harvest.producerKafkaConfig.sasl.password (line 4): the environment has no"
                " variable UNSET"
            ),
        ),
        ("name: ${", "harvest.name (line 4): write ${NAME} for a variable, $${ for ${"),
        ("name: ${a b}", "harvest.name (line 4): write ${NAME} for a variable, $${ for ${"),
    ],
)
def test_wrong_value(line: str, said: str) -> None:
    """A value that is wrong is refused with its key, its line and what may stand there."""
    assert refusal(f"{LEAST}  {line}\n") == said


def test_no_level() -> None:
    """A level that there is not is refused with those that there are."""
    assert refusal(f"{LEAST}logging: {{level: {SECRET}}}") == (
        "logging.level (line 4): it must be one of All, Trace, Debug, Info, Warn, Error, Off"
    )


def test_no_brokers() -> None:
    """Brokers that are named by an empty text are refused."""
    assert refusal(
        f"harvest:\n  dataSource: host=h\n  baseKafkaConfig: {{{SECRET}: 1}}"
    ).startswith(
        "harvest.baseKafkaConfig.bootstrap.servers is not given, and no Kafka is configured: set"
        " HARVEST_KAFKA=host:9092"
    )


def test_no_data_source() -> None:
    """Without a dataSource, and without one elsewhere, the error says where it may be given."""
    assert refusal("harvest: {}").startswith(
        "harvest.dataSource is not given, and no PostgreSQL is configured: set HARVEST_POSTGRES="
    )


@pytest.mark.parametrize(
    "source", [SECRET, f"host=h password={SECRET} x", f"postgresql://u:{SECRET}/@h/d", "${DSN}"]
)
def test_wrong_data_source(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """A dataSource that can't be read is refused without showing any of it."""
    monkeypatch.setenv("DSN", f"postgresql://u:a@{SECRET}@h/d")
    text = f"harvest:\n  baseKafkaConfig: {{bootstrap.servers: b}}\n  dataSource: {source}\n"
    assert refusal(text).startswith(
        "harvest.dataSource (line 3): this is no place of a PostgreSQL: write postgresql://"
    )
