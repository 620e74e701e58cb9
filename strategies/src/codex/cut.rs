//! Codex CLI's cuts of tool outputs that enter the history, and of user messages that a compaction
//! keeps (docs/sources/codex.md §1.4, §3).

use ctxbench_core::block::{BlockForm, BlockKind, Draft};
use ctxbench_core::compaction::middle_cut;
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::tokens::bytes_div4_up;
use serde::{Deserialize, Serialize};

use super::count::Release;
use super::settings::{CodexSettings, ToolOutputPolicy};

/// Limit on tool output, in the unit of the model's policy (docs/sources/codex.md §3).
const OUTPUT_LIMIT: u64 = 10_000;

/// Limit on tool output with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputPolicy {
    Bytes(u64),
    /// Tokens, counted as four bytes each.
    Tokens(u64),
}

impl OutputPolicy {
    /// Returns the limit at recording, which is 20 % higher (docs/sources/codex.md §3).
    pub fn at_recording(self) -> Self {
        let more = |n: u64| (n * 6).div_ceil(5);
        match self {
            OutputPolicy::Bytes(n) => OutputPolicy::Bytes(more(n)),
            OutputPolicy::Tokens(n) => OutputPolicy::Tokens(more(n)),
        }
    }
}

/// Returns the limit on tool output from the settings; `None` = outputs are not cut. A configured
/// limit is in tokens and counts as four bytes per token if the policy is in bytes
/// (docs/sources/codex.md §3).
pub fn output_policy(s: &CodexSettings, scale: f64) -> Option<OutputPolicy> {
    let given = s.tool_output_tokens;
    if given == Some(0) {
        return None;
    }
    let default = scale_tokens(OUTPUT_LIMIT, scale);
    Some(match s.tool_output_policy {
        ToolOutputPolicy::Bytes => OutputPolicy::Bytes(given.map_or(default, |n| 4 * n)),
        ToolOutputPolicy::Tokens => OutputPolicy::Tokens(given.unwrap_or(default)),
    })
}

/// Cuts a tool output according to this version.
pub fn cut_draft(release: Release, policy: Option<OutputPolicy>, mut raw: Draft) -> Draft {
    if let (BlockKind::Output, Some(policy)) = (raw.kind, policy) {
        let cut = cut_on_arrival(release, &raw.text, policy);
        if cut != *raw.text {
            raw.form = BlockForm::Truncated;
            raw.text = cut.into();
        }
    }
    raw
}

/// Cuts a message to a token budget: head, marker and tail. These are separate parts in 0.169 and a
/// single part in earlier releases.
pub fn cut_message(release: Release, text: &str, tokens: u64) -> Vec<String> {
    let budget = 4 * tokens as usize;
    let Some(cut) = middle_cut(text, budget) else { return vec![text.to_string()] };
    let marker = format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4));
    let parts = vec![cut.head.to_string(), marker, cut.tail.to_string()];
    if release == Release::V169 { parts } else { vec![parts.concat()] }
}

/// Cuts a tool output that enters the history in the middle, and adds a header that says so. Only
/// 0.169 adds the line with the token count (fn_output_truncation of 0.63 and 0.169; the output of
/// a_midturn in 0.104).
pub fn cut_output(release: Release, text: &str, policy: OutputPolicy) -> String {
    let Some(short) = shortened(text, policy) else { return text.to_string() };
    let lines = text.lines().count();
    let header = match release {
        Release::V063 | Release::V104 => format!("Total output lines: {lines}\n\n"),
        Release::V169 => format!(
            "Warning: truncated output (original token count: {})\nTotal output lines: {lines}\n\n",
            bytes_div4_up(text)
        ),
    };
    format!("{header}{short}")
}

/// Applies the second cut, made when an output is recorded: without a header (docs/sources/codex.md
/// §3).
pub fn cut_record(text: &str, policy: OutputPolicy) -> String {
    shortened(text, policy).unwrap_or_else(|| text.to_string())
}

/// Applies both cuts of one output under the model's policy. The command tool of 0.104 always cuts
/// to 10,000 tokens. Only the record follows the policy (a_midturn: 40,000 bytes are cut to
/// 12,000).
pub fn cut_on_arrival(release: Release, text: &str, policy: OutputPolicy) -> String {
    let first = match (release, policy) {
        (Release::V104, OutputPolicy::Bytes(n)) => OutputPolicy::Tokens(n),
        _ => policy,
    };
    cut_record(&cut_output(release, text, first), policy.at_recording())
}

/// Joins head, marker and tail; `None` if the text fits.
fn shortened(text: &str, policy: OutputPolicy) -> Option<String> {
    let budget = match policy {
        OutputPolicy::Bytes(n) => n,
        OutputPolicy::Tokens(n) => 4 * n,
    } as usize;
    let cut = middle_cut(text, budget)?;
    let marker = match policy {
        OutputPolicy::Bytes(_) => format!("…{} chars truncated…", cut.removed_chars),
        OutputPolicy::Tokens(_) => {
            format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4))
        }
    };
    Some(format!("{}{marker}{}", cut.head, cut.tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tool_of_0_104_cuts_to_tokens_and_its_record_to_bytes() {
        // a_midturn of 0.104: 12,000 bytes stay of the 40,000, with the header of the first cut.
        // The tool adds 106 bytes in front, which are cut with the rest: 28,155 characters are
        // removed.
        let text: String = (1..=4_000).map(|n| format!("line number {n}\n")).collect();
        let (head, tail) = (&text[..20_000], &text[46_893..]);
        let first = format!("Total output lines: 4000\n\n{head}…6724 tokens truncated…{tail}");
        let cut = cut_on_arrival(Release::V104, &text, OutputPolicy::Bytes(10_000));
        let removed = first.chars().count() - 12_000;
        let (head, tail) = (&first[..6_000], &first[first.len() - 6_000..]);
        assert_eq!(cut, format!("{head}…{removed} chars truncated…{tail}"));
        assert_eq!(removed + 106, 28_155);
    }
}
