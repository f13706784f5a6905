-- In the container, where the aggregator comes over a network: its password.
\set password `cat /run/secrets/database_password`
ALTER ROLE anonml PASSWORD :'password';
