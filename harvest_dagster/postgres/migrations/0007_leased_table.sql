-- Of which table a lease is: two harvests of one, under two names, would each publish its messages.
ALTER TABLE harvest.lease ADD COLUMN outbox oid;
