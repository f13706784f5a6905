-- Once, as the server's superuser: the aggregator's role and database, and what it needs to empty the log.
CREATE ROLE anonml LOGIN;
CREATE DATABASE anonml OWNER anonml;
GRANT pg_checkpoint TO anonml;
\connect anonml
GRANT EXECUTE ON FUNCTION pg_switch_wal() TO anonml;
