"""The command `harvest`, and `python -m harvest_dagster`, which is the same."""

from harvest_dagster import ctrl_c


def main() -> None:
    """Load the commands, and run the one that is asked for."""
    ctrl_c.ends()
    from harvest_dagster.cli import main as commands  # noqa: PLC0415 - what takes its time

    commands(prog_name="harvest")


if __name__ == "__main__":
    main()
