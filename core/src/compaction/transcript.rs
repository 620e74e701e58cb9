//! A conversation as one text under role headings, for summarisers that are given text instead of messages.

use std::sync::Arc;

use crate::block::{Block, Role};

/// User and assistant texts under `# ROLE` headings, a line break after each that lacks one; other roles are left out.
/// The shape of Aider's summary input (facts/aider-and-anthropic-sdk.md §1.1, `summarize_all`).
pub fn plain_transcript(blocks: &[Arc<Block>]) -> String {
    let mut out = String::new();
    for b in blocks {
        let name = match b.role {
            Role::User => "USER",
            Role::Assistant => "ASSISTANT",
            _ => continue,
        };
        out.push_str("# ");
        out.push_str(name);
        out.push('\n');
        out.push_str(&b.text);
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}
