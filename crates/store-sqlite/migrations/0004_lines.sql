-- The latest log lines of a run's user code, and what they add up to.
CREATE TABLE line_heads (
    run_id       TEXT NOT NULL PRIMARY KEY REFERENCES runs (run_id),
    first_number INTEGER NOT NULL,
    last_number  INTEGER NOT NULL,
    bytes        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lines (
    run_id     TEXT NOT NULL REFERENCES runs (run_id),
    number     INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    source     TEXT NOT NULL,
    text       TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) STRICT;
