//! The contexts in full, for a review.

use std::fmt::Write;

use ctxbench_harness::inspect::Piece;

use super::{Shown, heading, sentence};

/// A table of the strategies, then every context block by block.
pub(super) fn page(shown: &Shown) -> String {
    let mut out = format!("# {}\n\n", heading(shown));
    out +=
        "| strategy | before | after | summary | cost $ | waited s | facts lost | in summary |\n";
    out += "|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in &shown.strategies {
        let strategy = &row.strategy;
        if let Some(why) = &row.why {
            let _ = writeln!(out, "| {strategy} | {why} | | | | | | |");
        }
        for l in &row.compactions {
            let _ = write!(out, "| {strategy} | {} | {} |", l.before_tokens, l.after_tokens);
            let _ = match &l.measured {
                Some(m) => writeln!(
                    out,
                    " {} | {:.4} | {:.1} | {} | {} |",
                    m.summary_tokens,
                    m.cost_usd,
                    m.blocked_ms as f64 / 1000.0,
                    m.facts_lost,
                    m.facts_carried
                ),
                None => writeln!(out, " n/a | n/a | n/a | n/a | n/a |"),
            };
        }
    }
    for row in shown.strategies.iter().filter(|r| !r.compactions.is_empty()) {
        let _ = write!(out, "\n## {}\n", row.strategy);
        for l in &row.compactions {
            let _ = write!(out, "\n{}\n", sentence(l));
            side(&mut out, "Before", &l.before);
            side(&mut out, "After", &l.after);
        }
    }
    out
}

fn side(out: &mut String, title: &str, pieces: &[Piece]) {
    let _ = write!(out, "\n### {title}\n");
    for p in pieces {
        let tool = p.tool.as_deref().map(|t| format!(" `{t}`")).unwrap_or_default();
        let _ = write!(out, "\n**{}**{tool}, {} tokens\n", p.name(), p.tokens);
        if !p.text.is_empty() {
            let fence = fence(&p.text);
            let _ = write!(out, "\n{fence}\n{}\n{fence}\n", p.text.trim_end_matches('\n'));
        }
    }
}

/// One backquote more than the longest run in the text, at least three.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
