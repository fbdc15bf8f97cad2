"""The command `harvest`, with one line more among the rooms."""

from harvest_dagster.rooms import ROOMS

ROOMS.append("tests.support.counter")

if __name__ == "__main__":
    from harvest_dagster.cli import main

    main()
