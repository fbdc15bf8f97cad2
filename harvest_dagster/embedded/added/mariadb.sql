-- before: what its own scripts, which make the system tables, build on
CREATE DATABASE mysql;
USE mysql;
SET @auth_root_socket = NULL;

-- after: root alone gets in, with the password, and has a database for clients
DELETE FROM global_priv WHERE User = 'root' AND Host <> 'localhost';
FLUSH PRIVILEGES;
EXECUTE IMMEDIATE concat('ALTER USER root@localhost IDENTIFIED BY ', quote(@password));
CREATE DATABASE harvest;
