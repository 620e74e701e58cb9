//! Export to ctxbench's own session format.

use super::Export;

pub(super) const EXPORT: Export = Export {
    title: "Session JSONL",
    name: "session",
    ending: "jsonl",
    several: true,
    write: |session, _| session.to_jsonl(),
};
