-- Fence checks for PostgreSQL: docs/fencing.md says what they are for, and what they cost.
--
-- One row: a column beside what is guarded, and a condition in the statement that changes it.
--
--   ALTER TABLE account ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
--
--   UPDATE account SET fence = :token WHERE id = :id AND fence <= :token;    -- before it is read
--
--   UPDATE account SET balance = :balance, fence = :token WHERE id = :id AND fence <= :token;
--
-- Several rows, or rows that are not there yet: what is below, once; then, first in each transaction,
--
--   SELECT check_fence(:guarded, :token);

CREATE TABLE fences (
    guarded TEXT   PRIMARY KEY,             -- what for: the key of the lock, for one
    token   BIGINT NOT NULL CHECK (token > 0) -- the greatest seen
);

-- Fails with SQLSTATE RF001, and the transaction with it, if a greater token has been here. Else the row stays
-- locked until the transaction ends.
CREATE FUNCTION check_fence(what TEXT, writer BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fences AS seen (guarded, token) VALUES (what, writer)
        ON CONFLICT (guarded) DO UPDATE SET token = writer WHERE seen.token <= writer;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fenced: % has seen a greater token than %', what, writer USING ERRCODE = 'RF001';
    END IF;
END
$$;
