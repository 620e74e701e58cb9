//! The JSON Schema of the session format, generated from the types that read and write it.

use schemars::{JsonSchema, Schema};

use crate::{Entry, Header};

#[derive(JsonSchema)]
#[schemars(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum First {
    /// The first line.
    Session(Header),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum SessionLine {
    First(First),
    Entry(Entry),
}

/// Returns the schema of one line of a session file. Additional fields are allowed.
pub fn session_line() -> Schema {
    let mut schema = schemars::schema_for!(SessionLine);
    schema.insert("title".into(), "ctxbench session line".into());
    schema.insert(
        "description".into(),
        "One line of a session file (JSONL): the header first, then one entry per line.".into(),
    );
    schema
}
