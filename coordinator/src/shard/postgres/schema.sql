-- The tables and functions of Ringfence on PostgreSQL >= 15. They may be run again, and keep what is stored.
-- {schema} is the prefix of the shard; {unlogged} is UNLOGGED, or empty; {by_key} are settings. The names of functions end with
-- the version of this text, {version}: those of other releases stay beside, and use the same tables.
-- Each function has its own search_path: what others put into theirs is never called. They are in plpgsql: a function in SQL is
-- planned at each call.
CREATE SCHEMA IF NOT EXISTS {schema};

-- The server's timeline, which a promotion changes. It is an error on a standby.
CREATE OR REPLACE FUNCTION {schema}.timeline_{version}() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8);
END $$;

-- The life of the shard, and the timeline on which it began. Without a row of the present timeline none has begun:
-- unlogged tables are empty after a crash, and a promoted standby may lack the last commits. With fsync = off, so may a
-- server that has started again: then the life has the time at which the server started.
CREATE {unlogged} TABLE IF NOT EXISTS {schema}.life (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id uuid NOT NULL DEFAULT gen_random_uuid(),
  timeline text NOT NULL,
  started timestamptz
);
-- The last token.
CREATE {unlogged} TABLE IF NOT EXISTS {schema}.tokens (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  last bigint NOT NULL DEFAULT 0
);
-- Connections. A commit of a connection without its row is refused. A crash empties the table: it forgets draws, which do
-- not wait for the disk, and a pooler keeps the connections of the clients that drew. No id is given again after it.
CREATE UNLOGGED TABLE IF NOT EXISTS {schema}.gates (
  id bigint PRIMARY KEY DEFAULT hashtextextended(gen_random_uuid()::text, 0),
  used_ms bigint NOT NULL
);
CREATE {unlogged} TABLE IF NOT EXISTS {schema}.documents (
  name bytea PRIMARY KEY,
  version bigint NOT NULL,
  content text NOT NULL,
  -- The last millisecond at which it says something; NULL: it has no end.
  ends_ms bigint
) WITH (fillfactor = 70);

CREATE OR REPLACE FUNCTION {schema}.clock_ms_{version}(at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN floor(extract(epoch FROM at) * 1000)::bigint;
END $$;

CREATE OR REPLACE FUNCTION {schema}.present_life_{version}() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT l.id::text FROM {schema}.life l
    WHERE l.timeline = {schema}.timeline_{version}() AND (l.started IS NULL OR l.started = pg_postmaster_start_time()));
END $$;

CREATE OR REPLACE FUNCTION {schema}.refuse_isolation_{version}() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'inappropriate_isolation_level_for_branch_transaction', MESSAGE = format(
    'transactions are %s by default, and must be read committed: ALTER ROLE %I SET default_transaction_isolation = '
    '''read committed''; and let a pooler connect anew', current_setting('transaction_isolation'), session_user);
END $$;

-- Begins a life unless one is present. Its id is a new one: two standbys of one primary may be promoted to one timeline.
CREATE OR REPLACE FUNCTION {schema}.begin_life_{version}(patience text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- As all settings here, until the end of the transaction: behind a pooler, the connection is others' after that.
  PERFORM set_config('lock_timeout', patience, true);
  IF {schema}.present_life_{version}() IS NULL THEN
    INSERT INTO {schema}.life (timeline) VALUES ({schema}.timeline_{version}())
      ON CONFLICT (one) DO UPDATE SET id = excluded.id, timeline = excluded.timeline, started = NULL
      WHERE life.timeline <> excluded.timeline OR life.started <> pg_postmaster_start_time();
  END IF;
  IF current_setting('fsync') = 'off' THEN
    UPDATE {schema}.life SET started = pg_postmaster_start_time() WHERE started IS NULL;
  END IF;
  RETURN {schema}.present_life_{version}();
END $$;

-- Opens a connection, and ends the former one. Waits for a commit of that one.
CREATE OR REPLACE FUNCTION {schema}.open_{version}(
  former_life text, former bigint, patience text, OUT its_life text, OUT gate bigint, OUT is_durable boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at_ms bigint := {schema}.clock_ms_{version}(clock_timestamp());
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM {schema}.refuse_isolation_{version}();
  END IF;
  its_life := {schema}.begin_life_{version}(patience);
  INSERT INTO {schema}.tokens DEFAULT VALUES ON CONFLICT DO NOTHING;
  IF former_life = its_life THEN
    DELETE FROM {schema}.gates WHERE id = former;
  END IF;
  -- Those of processes that are gone. A connection in use keeps its row young.
  DELETE FROM {schema}.gates WHERE id IN (
    SELECT id FROM {schema}.gates WHERE used_ms < at_ms - 3600000 FOR UPDATE SKIP LOCKED);
  INSERT INTO {schema}.gates (used_ms) VALUES (at_ms) RETURNING id INTO gate;
  is_durable := EXISTS (
    SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '{schema}' AND c.relname = 'documents' AND c.relpersistence = 'p');
END $$;

-- Reads documents, then draws tokens: after the documents were read, no other connection has the same. The time is
-- before that of the snapshot.
CREATE OR REPLACE FUNCTION {schema}.read_{version}(
  its_life text, names bytea[], head bigint, tokens bigint, patience text,
  OUT is_alive boolean, OUT now_ms bigint, OUT last_token bigint, OUT drawn bigint, OUT head_is_stale boolean,
  OUT versions bigint[], OUT contents text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp {by_key} AS $$
BEGIN
  now_ms := {schema}.clock_ms_{version}(now());
  SELECT array_agg(d.version ORDER BY n.place), array_agg(d.content ORDER BY n.place) INTO versions, contents
    FROM unnest(names) WITH ORDINALITY AS n (name, place)
    LEFT JOIN {schema}.documents d ON d.name = n.name;
  is_alive := coalesce({schema}.present_life_{version}() = its_life, false);
  head_is_stale := tokens > 0
    AND head IS DISTINCT FROM (SELECT d.version FROM {schema}.documents d WHERE d.name = 'head');
  drawn := 0;
  IF NOT is_alive OR head_is_stale OR tokens = 0 THEN
    SELECT t.last INTO last_token FROM {schema}.tokens t;
    RETURN;
  END IF;
  -- A draw is on the disk before a commit that uses it: commits wait for the disk, and the log has an order.
  PERFORM set_config('lock_timeout', patience, true), set_config('synchronous_commit', 'off', true);
  SELECT t.last INTO last_token FROM {schema}.tokens t FOR UPDATE;
  drawn := tokens;
  -- The counter is the last 35 bits.
  IF (last_token & 34359738367) + drawn > {counter_max} THEN
    drawn := 0;
  ELSE
    UPDATE {schema}.tokens t SET last = last_token + drawn;
  END IF;
END $$;

-- A page of locks, in the order of their names.
CREATE OR REPLACE FUNCTION {schema}.page_{version}(
  its_life text, after bytea, at_most bigint,
  OUT is_alive boolean, OUT now_ms bigint, OUT names bytea[], OUT versions bigint[], OUT contents text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp {by_key} AS $$
BEGIN
  now_ms := {schema}.clock_ms_{version}(now());
  SELECT array_agg(d.name ORDER BY d.name), array_agg(d.version ORDER BY d.name), array_agg(d.content ORDER BY d.name)
    INTO names, versions, contents
    FROM (SELECT * FROM {schema}.documents WHERE name > after AND name < 'lock0' AND content <> ''
          ORDER BY name LIMIT at_most) d;
  is_alive := coalesce({schema}.present_life_{version}() = its_life, false);
END $$;

-- The documents that are not as expected. A version that is NULL: there is no document.
CREATE OR REPLACE FUNCTION {schema}.stale_{version}(
  checked bytea[], checked_versions bigint[], written bytea[], written_any boolean[], written_versions bigint[])
RETURNS bytea[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT array_agg(e.name)
      FROM (SELECT * FROM unnest(checked, checked_versions) AS c (name, version)
            UNION ALL
            SELECT w.name, w.version FROM unnest(written, written_versions, written_any) AS w (name, version, is_any)
            WHERE NOT w.is_any) e
      LEFT JOIN {schema}.documents d ON d.name = e.name
      WHERE d.version IS DISTINCT FROM e.version);
END $$;

-- Writes documents if all are as expected, and it is neither too early nor too late. A version that is NULL: there is no
-- document.
-- outcome 0: done at done_ms; 1: refused, see stale; 2: another life; 3: the connection was ended.
CREATE OR REPLACE FUNCTION {schema}.commit_{version}(
  its_life text, gate bigint, patience text, is_careful boolean, not_before_ms bigint, not_after_ms bigint, new_version bigint,
  at_least bigint, exactly bigint, checked bytea[], checked_versions bigint[],
  written bytea[], written_any boolean[], written_versions bigint[], contents text[], ends bigint[],
  channels text[], messages text[],
  OUT outcome integer, OUT stale bytea[], OUT done_ms bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp {by_key} AS $$
DECLARE
  at_ms bigint;
  updated bigint;
  inserted bigint;
BEGIN
  -- Otherwise it would not see what was committed while it waited.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM {schema}.refuse_isolation_{version}();
  END IF;
  PERFORM set_config('lock_timeout', patience, true);
  -- A commit that was answered is not lost in a crash, also where the role, the database or the server would have it so.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- Every commit depends on the head, and few write it: they wait for all others, and all others for them.
  IF 'head' = ANY (written) THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('{schema}', 0));
  ELSE
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('{schema}', 0));
  END IF;
  outcome := 2;
  IF {schema}.present_life_{version}() IS DISTINCT FROM its_life THEN
    RETURN;
  END IF;
  outcome := 1;
  -- Of many commits that change the same document, one is done. The others are refused here, before they lock a row: a
  -- transaction that locked one waits for the disk, and others wait for it. Where there are no others, this would be in vain.
  IF is_careful THEN
    stale := {schema}.stale_{version}(checked, checked_versions, written, written_any, written_versions);
  ELSE
    stale := {schema}.stale_{version}(checked, checked_versions, '{}', '{}', '{}');
  END IF;
  IF stale IS NOT NULL THEN
    RETURN;
  END IF;
  outcome := 3;
  PERFORM 1 FROM {schema}.gates g WHERE g.id = gate FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  outcome := 1;
  -- What is written is locked by that, in order, so that no two commits wait for each other; and so is all, if something
  -- else is checked beside the head.
  IF cardinality(array_remove(checked, 'head')) > 0 THEN
    PERFORM 1 FROM {schema}.documents d WHERE d.name = ANY (array_remove(checked || written, 'head'))
      ORDER BY d.name FOR UPDATE;
    stale := {schema}.stale_{version}(checked, checked_versions, '{}', '{}', '{}');
    IF stale IS NOT NULL THEN
      PERFORM set_config('synchronous_commit', 'off', true);
      RETURN;
    END IF;
  END IF;
  -- Not one that was written, or made, since it was found to be as expected.
  UPDATE {schema}.documents d SET version = new_version, content = w.content, ends_ms = w.ends_ms
    FROM unnest(written, contents, ends, written_versions, written_any) AS w (name, content, ends_ms, version, is_any)
    WHERE d.name = w.name AND (w.is_any OR d.version = w.version);
  GET DIAGNOSTICS updated = ROW_COUNT;
  inserted := 0;
  IF updated < cardinality(written) THEN
    INSERT INTO {schema}.documents (name, version, content, ends_ms)
      SELECT w.name, new_version, w.content, w.ends_ms
      FROM unnest(written, contents, ends, written_versions) AS w (name, content, ends_ms, version)
      LEFT JOIN {schema}.documents d ON d.name = w.name
      WHERE d.name IS NULL AND w.version IS NULL ORDER BY w.name
      ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS inserted = ROW_COUNT;
  END IF;
  at_ms := {schema}.clock_ms_{version}(clock_timestamp());
  IF updated + inserted < cardinality(written) OR at_ms NOT BETWEEN not_before_ms AND not_after_ms THEN
    IF updated + inserted > 0 THEN
      RAISE EXCEPTION 'the documents have changed, or it is too late' USING ERRCODE = 'serialization_failure';
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    stale := {schema}.stale_{version}('{}', '{}', written, written_any, written_versions);
    RETURN;
  END IF;
  UPDATE {schema}.gates g SET used_ms = at_ms WHERE g.id = gate AND g.used_ms < at_ms - 600000;
  IF exactly IS NOT NULL THEN
    UPDATE {schema}.tokens t SET last = exactly;
  ELSIF at_least IS NOT NULL THEN
    UPDATE {schema}.tokens t SET last = at_least WHERE t.last < at_least;
  END IF;
  -- Of equal messages of one commit only one would arrive: each has its place in front.
  PERFORM pg_notify(m.channel, m.place || ' ' || m.message)
    FROM unnest(channels, messages) WITH ORDINALITY AS m (channel, message, place);
  outcome := 0;
  done_ms := at_ms;
END $$;

-- Deletes documents that ended a while ago, among some after the name; returns where it stopped, or NULL at the end.
CREATE OR REPLACE FUNCTION {schema}.sweep_{version}(after bytea) RETURNS bytea
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp {by_key} AS $$
DECLARE
  forgotten_ms bigint := {schema}.clock_ms_{version}(clock_timestamp()) - {forget_after_ms};
  seen bytea[];
  forgotten bytea[];
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT array_agg(p.name ORDER BY p.name), array_agg(p.name) FILTER (WHERE p.ends_ms < forgotten_ms)
    INTO seen, forgotten
    FROM (SELECT name, ends_ms FROM {schema}.documents WHERE name > after ORDER BY name LIMIT 512) p;
  IF forgotten IS NOT NULL THEN
    DELETE FROM {schema}.documents WHERE name IN (
      SELECT name FROM {schema}.documents WHERE name = ANY (forgotten) AND ends_ms < forgotten_ms
      FOR UPDATE SKIP LOCKED);
  END IF;
  RETURN seen[cardinality(seen)];
END $$;
