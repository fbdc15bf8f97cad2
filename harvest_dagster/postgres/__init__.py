"""PostgreSQL: table names, named statements and the migrations of the `harvest` schema."""
