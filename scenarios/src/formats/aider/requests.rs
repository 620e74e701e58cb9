//! Aider's history of requests: `TO LLM time`, then the messages with their roles at the start of
//! each line and dashes between them, then `LLM RESPONSE time` and the answer.

use crate::formats::prelude::*;

const REQUEST: &str = "TO LLM ";
const RESPONSE: &str = "LLM RESPONSE ";
const SYSTEM: &str = "SYSTEM";
const DASHES: &str = "-------";

/// Returns the time of each request, ms since 1970, and its system prompt.
pub(super) fn first_prompts(text: &str) -> Vec<(i64, String)> {
    let mut out: Vec<(i64, String)> = Vec::new();
    // True while the lines belong to the first message of a request.
    let mut open = false;
    for line in text.lines() {
        if let Some(at) = line.strip_prefix(REQUEST).and_then(time::normal) {
            let Some(at) = time::millis(&at) else { continue };
            out.push((at, String::new()));
            open = true;
            continue;
        }
        let Some((_, prompt)) = out.last_mut().filter(|_| open) else { continue };
        match line.strip_prefix(SYSTEM) {
            Some(words) => {
                if !prompt.is_empty() {
                    prompt.push('\n');
                }
                prompt.push_str(words.strip_prefix(' ').unwrap_or(words));
            }
            None if line == DASHES && prompt.is_empty() => {}
            None => open = false,
        }
        if line.starts_with(RESPONSE) {
            open = false;
        }
    }
    out.retain(|(_, prompt)| !prompt.is_empty());
    out
}
