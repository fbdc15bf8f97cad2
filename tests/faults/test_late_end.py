"""A request to end a transaction comes late: when the producer has begun its next one.

Kafka 4.3 does not refuse such a request by itself. With a harvest that keeps its producers, it
commits what it has of the next transaction, about 50 of 200 messages; then it refuses the others
(KIP-890's verification of partitions), so that the batch is published again, and those are double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from tests.support.account import read
from tests.support.faults import settle
from tests.support.late_end import Late, LateEnds, late_ends
from tests.support.waiting import until
from tests.torture.proxy import HOST

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartTour

COUNT = 200
"""A batch: with so many, there are some for each partition, and each has a request of its own."""
PATIENCE = {"socket.timeout.ms": 3000}
REFUSALS = {KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}


def put(place: Place) -> None:
    """Stash a batch, and wait until it is published."""
    place.put(COUNT)
    place.drained()


def put_until_paused(place: Place, late: Late) -> None:
    """Stash batches, until a part of one is with Kafka, in a transaction of that producer's id."""
    while not late.paused.is_set():
        place.put(COUNT)
        until(lambda: late.paused.is_set() or not place.waiting())


def seen_in_part(place: Place) -> list[int]:
    """Return how much a reader sees of each batch of which it sees neither nothing nor all."""
    seen = {message.value for message in read(place.kafka, place.topic)}
    batches = [place.stashed[n : n + COUNT] for n in range(0, len(place.stashed), COUNT)]
    visible = [sum(message.value in seen for message in batch) for batch in batches]
    return [count for count in visible if count not in {0, COUNT}]


def comes_late(place: Place, proxy: LateEnds, *, cut: bool, kept: bool) -> None:
    """Have one commit come again amid the next transaction of its id, and check what that does."""
    late = proxy.catch(cut=cut)
    put(place)
    put_until_paused(place, late)
    answer = proxy.deliver(late, kept=kept)
    assert not seen_in_part(place)
    assert answer in REFUSALS
    proxy.go_on(late)
    place.drained()
    assert late.end
    (*_, last) = (end for end in proxy.ends if end.transactional_id == late.end.transactional_id)
    assert last.epoch > late.end.epoch


def test_a_commit_comes_late(place: Place, start_tour: StartTour) -> None:
    """Nothing is lost, doubled or torn by a commit that comes again amid the next transaction.

    Once its connection was cut, and it comes on the old one, as the broker still has it; once its
    answer did not come in time, and it comes on a new one. Each time the producers are replaced.
    """
    port = int(str(place.kafka["bootstrap.servers"]).rpartition(":")[2])
    with late_ends(port) as proxy:
        kafka = {**place.kafka, "bootstrap.servers": f"{HOST}:{proxy.port}"}
        config = place.config(base_kafka=kafka, producer_kafka=PATIENCE)
        running = start_tour(config, place.lease())
        put(place)
        comes_late(place, proxy, cut=True, kept=True)
        comes_late(place, proxy, cut=False, kept=False)
        settle(place, "exactly_once")
        assert running.tour.totals.rounds >= 3
        running.end()


def test_a_broker_that_is_down_is_no_matter(place: Place, start_tour: StartTour) -> None:
    """Of a broker that nobody can connect to no commit comes late: the producers go on."""
    kafka = {**place.kafka, "bootstrap.servers": f"{HOST}:9,{place.kafka['bootstrap.servers']}"}
    running = start_tour(place.config(base_kafka=kafka), place.lease())
    for _ in range(5):
        put(place)
    settle(place, "exactly_once")
    assert running.tour.totals.rounds == 1
