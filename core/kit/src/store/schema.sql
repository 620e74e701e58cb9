CREATE TABLE sessions (
    id          TEXT PRIMARY KEY,
    parent_id   TEXT REFERENCES sessions(id),
    title       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    -- Last message of the parent that a fork has; NULL in a child that is not a fork.
    forked_at   TEXT
) STRICT;
CREATE TABLE messages (
    session_id  TEXT NOT NULL REFERENCES sessions(id),
    id          TEXT NOT NULL,
    role        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    -- 1 = a compaction of everything before it.
    is_boundary INTEGER NOT NULL,
    -- 1 = repeats an earlier message of the log, so that loading need not go back to it.
    is_copy     INTEGER NOT NULL,
    PRIMARY KEY (session_id, id)
) STRICT;
CREATE TABLE parts (
    session_id  TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    id          TEXT NOT NULL,
    kind        TEXT NOT NULL,
    data        TEXT NOT NULL,
    -- Time of pruning, and the text shown instead of the output.
    pruned_at   INTEGER,
    placeholder TEXT,
    PRIMARY KEY (session_id, message_id, id),
    FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE
) STRICT;
CREATE TABLE checkpoints (
    session_id  TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    id          TEXT NOT NULL,
    -- Number of the files in `checkpoint::EditCheckpoints`; NULL = none.
    files       INTEGER,
    -- NULL = made for a prompt.
    name        TEXT,
    -- 0 = before its message, 1 = after it.
    is_after    INTEGER NOT NULL,
    PRIMARY KEY (session_id, message_id, id),
    FOREIGN KEY (session_id, message_id) REFERENCES messages (session_id, id) ON DELETE CASCADE
) STRICT;
