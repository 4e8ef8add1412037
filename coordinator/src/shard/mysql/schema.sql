-- The tables and procedures of Ringfence on MariaDB >= 10.11. They may be run again, and keep what is stored.
-- {p} is the prefix of the shard. The names of routines end with the version of this text, {version}: those of other releases
-- stay beside, and use the same tables. Statements end with a line that is //.
-- now() in a procedure is the time at which the present statement of it began.
SET sql_mode = 'STRICT_ALL_TABLES'
//
CREATE TABLE IF NOT EXISTS `{p}_life` (
  one tinyint PRIMARY KEY,
  id char(36) NOT NULL
) ENGINE = InnoDB
//
-- The last token.
CREATE TABLE IF NOT EXISTS `{p}_tokens` (
  one tinyint PRIMARY KEY,
  last bigint NOT NULL
) ENGINE = InnoDB
//
-- Connections. A commit of a connection without its row is refused.
CREATE TABLE IF NOT EXISTS `{p}_gates` (
  id bigint AUTO_INCREMENT PRIMARY KEY,
  used_ms bigint NOT NULL
) ENGINE = InnoDB
//
CREATE TABLE IF NOT EXISTS `{p}_documents` (
  name varbinary(1024) PRIMARY KEY,
  version bigint NOT NULL,
  content longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  -- The last millisecond at which it says something; NULL: it has no end.
  ends_ms bigint
) ENGINE = InnoDB
//
-- Messages that their receivers have not taken yet.
CREATE TABLE IF NOT EXISTS `{p}_messages` (
  id bigint AUTO_INCREMENT PRIMARY KEY,
  client char(32) CHARACTER SET ascii NOT NULL,
  text longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  at_ms bigint NOT NULL,
  KEY (client, id)
) ENGINE = InnoDB
//
CREATE OR REPLACE FUNCTION `{p}_clock_ms_{version}`(at datetime(3)) RETURNS bigint NO SQL SQL SECURITY INVOKER
RETURN floor(unix_timestamp(at) * 1000)
//
-- A life is the id of its row, and the server: a promoted replica may lack the last commits. Replication needs unlike ids of
-- servers. (A function that read the row would lock it.)
CREATE OR REPLACE FUNCTION `{p}_server_{version}`() RETURNS varchar(128) NO SQL SQL SECURITY INVOKER
RETURN concat(':', @@server_id, ':', @@hostname)
//
-- Opens a connection, and ends the former one. Waits for a commit of that one.
CREATE OR REPLACE PROCEDURE `{p}_open_{version}`(former_life varchar(255), former bigint)
SQL SECURITY INVOKER
BEGIN
  DECLARE at_ms bigint DEFAULT `{p}_clock_ms_{version}`(now(3));
  DECLARE present varchar(255);
  -- There a row is locked at one node alone.
  IF EXISTS (SELECT 1 FROM information_schema.global_variables
             WHERE variable_name = 'WSREP_ON' AND variable_value = 'ON') THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a Galera cluster cannot keep locks';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM `{p}_life`) THEN
    INSERT IGNORE INTO `{p}_life` VALUES (1, uuid());
  END IF;
  IF NOT EXISTS (SELECT 1 FROM `{p}_tokens`) THEN
    INSERT IGNORE INTO `{p}_tokens` VALUES (1, 0);
  END IF;
  SELECT max(concat(l.id, `{p}_server_{version}`())) INTO present FROM `{p}_life` l;
  IF former_life = present THEN
    DELETE FROM `{p}_gates` WHERE id = former;
  END IF;
  -- Those of processes that are gone. A connection in use keeps its row young.
  FOR old IN (SELECT id FROM `{p}_gates` WHERE used_ms < at_ms - 3600000) DO
    DELETE FROM `{p}_gates` WHERE id = old.id AND used_ms < at_ms - 3600000;
  END FOR;
  INSERT INTO `{p}_gates` (used_ms) VALUES (at_ms);
  SELECT present, last_insert_id(),
    @@innodb_flush_log_at_trx_commit = 1 AND (NOT @@log_bin OR @@sync_binlog = 1);
END
//
-- Reads documents, then draws tokens: after the documents were read, no other connection has the same. The time is
-- before that of the snapshot.
CREATE OR REPLACE PROCEDURE `{p}_read_{version}`(
  its_life varchar(255), names longtext, head bigint, tokens bigint)
SQL SECURITY INVOKER
BEGIN
  DECLARE now_ms bigint DEFAULT `{p}_clock_ms_{version}`(now(3));
  DECLARE is_alive, is_stale boolean;
  DECLARE its_head, last_token, drawn bigint DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK;
    RESIGNAL;
  END;
  SELECT d.version, d.content
    FROM json_table(names, '$[*]' COLUMNS (place FOR ORDINALITY, name varchar(2048) PATH '$')) n
    LEFT JOIN `{p}_documents` d ON d.name = unhex(n.name)
    ORDER BY n.place;
  SELECT ifnull(max(concat(l.id, `{p}_server_{version}`())) = its_life, false) INTO is_alive FROM `{p}_life` l;
  SELECT max(d.version) INTO its_head FROM `{p}_documents` d WHERE d.name = 'head';
  SET is_stale = tokens > 0 AND NOT (its_head <=> head);
  IF NOT is_alive OR is_stale OR tokens = 0 THEN
    SELECT t.last INTO last_token FROM `{p}_tokens` t;
  ELSE
    START TRANSACTION;
    SELECT t.last INTO last_token FROM `{p}_tokens` t FOR UPDATE;
    SET drawn = tokens;
    -- The counter is the last 35 bits.
    IF (last_token & 34359738367) + drawn > {counter_max} THEN
      SET drawn = 0;
    ELSE
      UPDATE `{p}_tokens` t SET t.last = last_token + drawn;
    END IF;
    COMMIT;
  END IF;
  SELECT is_alive, now_ms, last_token, drawn, is_stale;
END
//
-- A page of locks, in the order of their names.
CREATE OR REPLACE PROCEDURE `{p}_page_{version}`(its_life varchar(255), after varbinary(1024), at_most bigint)
SQL SECURITY INVOKER
BEGIN
  DECLARE now_ms bigint DEFAULT `{p}_clock_ms_{version}`(now(3));
  SELECT name, version, content FROM `{p}_documents`
    WHERE name > after AND name < 'lock0' AND content <> '' ORDER BY name LIMIT at_most;
  SELECT ifnull(max(concat(l.id, `{p}_server_{version}`())) = its_life, false), now_ms FROM `{p}_life` l;
END
//
-- Writes documents if all are as expected, and it is neither too early nor too late. A version that is NULL: there is no document.
-- The contents are parts of one text: read as JSON, long ones take many times as long.
-- outcome 0: done at the time; 1: refused, see the stale names; 2: another life; 3: the connection was ended.
CREATE OR REPLACE PROCEDURE `{p}_commit_{version}`(
  its_life varchar(255), gate bigint, not_before_ms bigint, not_after_ms bigint, new_version bigint, at_least bigint,
  exactly bigint,
  changes_head boolean, is_careful boolean, locked longtext, checked longtext, written longtext,
  contents longtext CHARACTER SET utf8mb4, messages longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER
`whole`: BEGIN
  DECLARE at_ms, there, made, wanted bigint DEFAULT 0;
  DECLARE present varchar(255);
  DECLARE stale longtext;
  -- A duplicate, a deadlock, a lock that was not given in time.
  DECLARE EXIT HANDLER FOR 1062, 1213, 1205
  BEGIN
    ROLLBACK;
    SELECT 1, NULL, NULL;
  END;
  -- Otherwise the next request would commit a part of this one.
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK;
    RESIGNAL;
  END;
  -- Of many commits that change the same document, one is done. The others are refused here, before they wait for its lock.
  -- (In the transaction, this read would be all that it sees.) Where there are no others, this would be in vain.
  IF is_careful THEN
    SELECT json_arrayagg(w.name) INTO stale
      FROM json_table(written, '$[*]' COLUMNS (
        name varchar(2048) PATH '$.n', version bigint PATH '$.v', is_any boolean PATH '$.any')) w
      LEFT JOIN `{p}_documents` d ON d.name = unhex(w.name)
      WHERE NOT w.is_any AND NOT d.version <=> w.version;
    IF stale IS NOT NULL THEN
      SELECT 1, stale, NULL;
      LEAVE `whole`;
    END IF;
  END IF;
  START TRANSACTION;
  -- Every commit depends on the head, and few write it: they wait for all others, and all others for them.
  IF changes_head THEN
    SELECT max(concat(l.id, `{p}_server_{version}`())) INTO present FROM `{p}_life` l FOR UPDATE;
  ELSE
    SELECT max(concat(l.id, `{p}_server_{version}`())) INTO present FROM `{p}_life` l LOCK IN SHARE MODE;
  END IF;
  IF NOT present <=> its_life THEN
    ROLLBACK;
    SELECT 2, NULL, NULL;
    LEAVE `whole`;
  END IF;
  SELECT count(g.id) INTO there FROM `{p}_gates` g WHERE g.id = gate FOR UPDATE;
  IF there = 0 THEN
    ROLLBACK;
    SELECT 3, NULL, NULL;
    LEAVE `whole`;
  END IF;
  -- What is written is locked by that, in the order of names, so that no two commits wait for each other; and so is all, if
  -- something else is checked beside the head.
  IF json_length(locked) > 0 THEN
    SELECT count(d.version) INTO there
      FROM json_table(locked, '$[*]' COLUMNS (name varchar(2048) PATH '$')) n
      STRAIGHT_JOIN `{p}_documents` d FORCE INDEX (PRIMARY) ON d.name = unhex(n.name)
      FOR UPDATE;
  END IF;
  SELECT json_arrayagg(e.name) INTO stale
    FROM json_table(checked, '$[*]' COLUMNS (name varchar(2048) PATH '$.n', version bigint PATH '$.v')) e
    LEFT JOIN `{p}_documents` d ON d.name = unhex(e.name)
    WHERE NOT d.version <=> e.version;
  IF stale IS NOT NULL THEN
    ROLLBACK;
    SELECT 1, stale, NULL;
    LEAVE `whole`;
  END IF;
  SET wanted = json_length(written);
  -- Not one that was written, or made, since it was found to be as expected.
  UPDATE json_table(written, '$[*]' COLUMNS (
      name varchar(2048) PATH '$.n', at bigint PATH '$.at', length bigint PATH '$.len', ends_ms bigint PATH '$.e',
      version bigint PATH '$.v', is_any boolean PATH '$.any')) w
    STRAIGHT_JOIN `{p}_documents` d FORCE INDEX (PRIMARY) ON d.name = unhex(w.name)
    SET d.version = new_version, d.content = substring(contents, w.at, w.length), d.ends_ms = w.ends_ms
    WHERE w.is_any OR d.version = w.version;
  SET made = row_count();
  IF made < wanted THEN
    INSERT INTO `{p}_documents` (name, version, content, ends_ms)
      SELECT unhex(w.name), new_version, substring(contents, w.at, w.length), w.ends_ms
      FROM json_table(written, '$[*]' COLUMNS (
        name varchar(2048) PATH '$.n', at bigint PATH '$.at', length bigint PATH '$.len', ends_ms bigint PATH '$.e',
        version bigint PATH '$.v')) w
      LEFT JOIN `{p}_documents` d ON d.name = unhex(w.name)
      WHERE d.name IS NULL AND w.version IS NULL ORDER BY w.name;
    SET made = made + row_count();
  END IF;
  SET at_ms = `{p}_clock_ms_{version}`(now(3));
  IF made < wanted OR at_ms NOT BETWEEN not_before_ms AND not_after_ms THEN
    ROLLBACK;
    SELECT 1, json_arrayagg(w.name), NULL
      FROM json_table(written, '$[*]' COLUMNS (
        name varchar(2048) PATH '$.n', version bigint PATH '$.v', is_any boolean PATH '$.any')) w
      LEFT JOIN `{p}_documents` d ON d.name = unhex(w.name)
      WHERE NOT w.is_any AND NOT d.version <=> w.version;
    LEAVE `whole`;
  END IF;
  UPDATE `{p}_gates` g SET g.used_ms = at_ms WHERE g.id = gate AND g.used_ms < at_ms - 600000;
  IF exactly IS NOT NULL THEN
    UPDATE `{p}_tokens` t SET t.last = exactly;
  ELSEIF at_least IS NOT NULL THEN
    UPDATE `{p}_tokens` t SET t.last = at_least WHERE t.last < at_least;
  END IF;
  INSERT INTO `{p}_messages` (client, text, at_ms)
    SELECT m.client, m.text, at_ms
    FROM json_table(messages, '$[*]' COLUMNS (
      place FOR ORDINALITY, client char(32) PATH '$.to', text longtext CHARACTER SET utf8mb4 PATH '$.text')) m
    ORDER BY m.place;
  COMMIT;
  SELECT 0, NULL, at_ms;
END
//
-- Deletes documents that ended a while ago, among some after the name, and messages that nobody takes. Tells where it
-- stopped, or NULL at the end.
CREATE OR REPLACE PROCEDURE `{p}_sweep_{version}`(after varbinary(1024))
SQL SECURITY INVOKER
BEGIN
  DECLARE forgotten_ms bigint DEFAULT `{p}_clock_ms_{version}`(now(3)) - {forget_after_ms};
  DECLARE until varbinary(1024);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    ROLLBACK;
    RESIGNAL;
  END;
  SELECT max(p.name) INTO until
    FROM (SELECT name FROM `{p}_documents` WHERE name > after ORDER BY name LIMIT 512) p;
  -- One by one: a scan to delete would wait for documents that it does not delete.
  START TRANSACTION;
  FOR old IN (SELECT name FROM `{p}_documents` WHERE name > after AND name <= until AND ends_ms < forgotten_ms) DO
    DELETE FROM `{p}_documents` WHERE name = old.name AND ends_ms < forgotten_ms;
  END FOR;
  COMMIT;
  START TRANSACTION;
  FOR old IN (SELECT id FROM `{p}_messages` WHERE at_ms < forgotten_ms LIMIT 512) DO
    DELETE FROM `{p}_messages` WHERE id = old.id;
  END FOR;
  COMMIT;
  SELECT until;
END
//
