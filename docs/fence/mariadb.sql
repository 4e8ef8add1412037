-- Fence checks for MariaDB (InnoDB): docs/fencing.md says what they are for, and what they cost.
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
--   CALL check_fence(:guarded, :token);

CREATE TABLE fences (
    -- What for: the key of the lock, for one. Bytes: text would be compared without regard to case.
    guarded VARBINARY(512) PRIMARY KEY,
    token   BIGINT         NOT NULL CHECK (token > 0) -- the greatest seen
) ENGINE = InnoDB;

-- Fails with SQLSTATE RF001 if a greater token has been here: then roll back. Else the row stays locked until the
-- transaction ends.
DELIMITER //
CREATE PROCEDURE check_fence(what VARBINARY(512), writer BIGINT)
BEGIN
    DECLARE greatest_seen BIGINT;
    INSERT INTO fences (guarded, token) VALUES (what, writer)
        ON DUPLICATE KEY UPDATE token = GREATEST(token, writer);
    -- FOR UPDATE looks at what is there; without it, at what was when the transaction began.
    SELECT token INTO greatest_seen FROM fences WHERE guarded = what FOR UPDATE;
    IF greatest_seen > writer THEN
        SIGNAL SQLSTATE 'RF001' SET MESSAGE_TEXT = 'fenced: a greater token has been here';
    END IF;
END //
DELIMITER ;
