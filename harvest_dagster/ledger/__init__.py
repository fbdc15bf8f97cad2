"""What PostgreSQL remembers for everybody: who leads, what happened, what is written already."""
