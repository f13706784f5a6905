CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Amounts count 1e-9. The pure rules are in peer/rules/ledger.py.
CREATE TABLE ledger (
    study BLOB PRIMARY KEY,
    title TEXT NOT NULL,
    aggregator BLOB NOT NULL,
    data_set TEXT NOT NULL,
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    spent INTEGER NOT NULL CHECK (spent >= 0),
    measure TEXT NOT NULL,
    unit TEXT NOT NULL,
    condition TEXT NOT NULL
) STRICT;

CREATE TABLE studies (
    study BLOB PRIMARY KEY,
    address TEXT NOT NULL,
    aggregator BLOB NOT NULL,
    manifest BLOB NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    consented INTEGER NOT NULL,
    minimum_cohort INTEGER NOT NULL,
    secrets BLOB,
    enrolment BLOB,
    withdrawal BLOB,
    due REAL NOT NULL,
    chain BLOB,
    roster_digest BLOB,
    seed BLOB,
    credential BLOB,
    draws TEXT NOT NULL DEFAULT '',
    snapshot BLOB,
    barred INTEGER NOT NULL DEFAULT 0,
    -- JSON (peer/store/records.py): evaluating the features has begun, and packets are not made yet.
    evaluation TEXT
) STRICT;

-- One row per slot and round that was decided: a packet, or that its window was missed. The packet is erased, the row stays as
-- the receipt, and its key keeps a slot from ever being perturbed twice.
CREATE TABLE outbox (
    study BLOB NOT NULL,
    round INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    survey INTEGER NOT NULL,
    epsilon INTEGER NOT NULL,
    packet BLOB,
    digest BLOB,
    send_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    word TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (study, round, slot)
) STRICT;

CREATE TABLE evidence (
    study BLOB NOT NULL,
    what TEXT NOT NULL,
    proof BLOB NOT NULL,
    PRIMARY KEY (study, what)
) STRICT;

-- Unix seconds until which nothing of a study is done, or with an empty study nothing at all.
CREATE TABLE pauses (
    study BLOB PRIMARY KEY,
    until REAL NOT NULL
) STRICT;

-- Names of tellers with the keys under which studies that were joined knew them (peer/rules/tellers.py).
CREATE TABLE tellers (
    name TEXT NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (name, key)
) STRICT;

-- Links of studies that wait for the owner's answer, closed as secrets are (peer/store/pending_invites.py).
CREATE TABLE waiting (
    study BLOB PRIMARY KEY,
    link BLOB NOT NULL
) STRICT;

-- Results of studies with letters that are this member's alone (anon/protocols/board.py).
CREATE TABLE received (
    study BLOB NOT NULL,
    kind TEXT NOT NULL,
    part INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (study, kind, part)
) STRICT;
