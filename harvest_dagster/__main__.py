"""`python -m harvest_dagster` is the command `harvest`."""

from harvest_dagster.cli import main

main(prog_name="harvest")
