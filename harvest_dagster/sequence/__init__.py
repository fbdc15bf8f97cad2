"""Exactly once by identity: what messages are called, and which of them count. Pure: no I/O.

Each message has a UUID, which says who sent it (its producer), when (its clock, which only grows)
and how it counts (its flags): at once, or once a later message settles it. A reader that keeps the
largest clock of each producer knows a double when it sees one, and may forget nothing else.

- `uuids`: a UUID's sixteen bytes, made and read.
- `ticks`: clocks, and how they move.
- `publisher`: gives messages their UUIDs, and makes what acknowledges them.
- `sequencer`: reads messages as they stand in a log, and yields those that count, in order.
- `outcomes`: what can become of a message.
- `states`: what a sequencer remembers of its producers, kept in a checkpoint and pruned.
"""
