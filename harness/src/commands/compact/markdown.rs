//! Complete contexts as Markdown, for a review.

use std::fmt::Write;

use ctxbench_replay::inspect::{CompactionLayout, ContextBlock, stays, unchanged};

use super::{Output, heading, sentence, tools_line};

/// Returns a table of the strategies, followed by every context block by block. A context that was
/// already shown is not repeated.
pub(super) fn page(shown: &Output) -> String {
    let mut out = format!("# {}\n\n{}\n\n", heading(shown), tools_line(shown));
    out += "| strategy | before | after | summary | cost $ | waited s | facts lost | in summary | \
        what stands after |\n";
    out += "|---|--:|--:|--:|--:|--:|--:|--:|---|\n";
    for row in &shown.strategies {
        let strategy = &row.strategy;
        if let Some(why) = &row.why {
            let _ = writeln!(out, "| {strategy} | | | | | | | | {why} |");
        }
        for l in &row.compactions {
            let _ = writeln!(out, "| {strategy} | {} |", figures(l));
        }
    }
    let mut told: Vec<(&str, &[ContextBlock])> = Vec::new();
    for row in shown.strategies.iter().filter(|r| !r.compactions.is_empty()) {
        let _ = write!(out, "\n## {}\n", row.strategy);
        for l in &row.compactions {
            let _ = write!(out, "\n{}\n", sentence(l));
            out += "\n### Before\n";
            match told.iter().find(|(_, before)| *before == l.before) {
                Some((who, _)) => {
                    let _ = write!(out, "\nThe same as before {who}.\n");
                }
                None => {
                    told.push((&row.strategy, &l.before));
                    l.before.iter().for_each(|p| write_block(&mut out, p));
                }
            }
            out += "\n### After\n";
            for (p, same) in l.after.iter().zip(unchanged(&l.before, &l.after)) {
                match same {
                    true => {
                        let _ = write!(out, "\n{}, as before\n", title(p));
                    }
                    false => write_block(&mut out, p),
                }
            }
        }
    }
    out
}

fn figures(l: &CompactionLayout) -> String {
    let measured = match &l.measured {
        Some(m) => format!(
            "{} | {:.4} | {:.1} | {} | {}",
            m.summary_tokens,
            m.cost_usd,
            m.blocked_ms as f64 / 1000.0,
            m.facts_lost,
            m.facts_carried
        ),
        None => "n/a | n/a | n/a | n/a | n/a".into(),
    };
    let part = |(name, count, tokens): (String, usize, u64)| match count {
        1 => format!("{name} {tokens}"),
        n => format!("{n} × {name} {tokens}"),
    };
    let stays: Vec<String> = stays(&l.after).into_iter().map(part).collect();
    format!("{} | {} | {measured} | {}", l.before_tokens, l.after_tokens, stays.join(", "))
}

fn title(p: &ContextBlock) -> String {
    let tool = p.tool.as_deref().map(|t| format!(" `{t}`")).unwrap_or_default();
    format!("**{}**{tool}, {} tokens", p.name(), p.tokens)
}

fn write_block(out: &mut String, p: &ContextBlock) {
    let _ = write!(out, "\n{}\n", title(p));
    if !p.text.is_empty() {
        let fence = fence(&p.text);
        let _ = write!(out, "\n{fence}\n{}\n{fence}\n", p.text.trim_end_matches('\n'));
    }
}

/// Returns a code fence for a text: one backquote more than its longest run of backquotes, but at
/// least three.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
