//! Contexts as text, with one line per block: on the left before the compaction, on the right after
//! it.

use std::fmt::Write;

use ctxbench_replay::inspect::{CompactionLayout, ContextBlock};

use super::{Output, heading, sentence, tools_line};

/// Width of a side, characters: both fit into 80 columns.
const SIDE: usize = 38;

/// Returns the page, one strategy after the other.
pub(super) fn page(shown: &Output) -> String {
    let mut out = format!("{}\n{}\n\n", heading(shown), tools_line(shown));
    for row in &shown.strategies {
        let own = match row.before_it {
            None | Some(0) => String::new(),
            Some(n) => format!(" (compacted {n}× by itself before)"),
        };
        let why = row.why.as_deref().map(|w| format!(": {w}")).unwrap_or_default();
        let _ = writeln!(out, "{}{own}{why}", row.strategy);
        for l in &row.compactions {
            side_by_side(&mut out, l);
        }
        out.push('\n');
    }
    out
}

fn side_by_side(out: &mut String, l: &CompactionLayout) {
    let _ = writeln!(out, "{}", sentence(l));
    let _ = writeln!(out, "{:<SIDE$} | {:<SIDE$}", "before", "after");
    for i in 0..l.before.len().max(l.after.len()) {
        let cell = |all: &[ContextBlock]| all.get(i).map(line).unwrap_or_default();
        let row = format!("{:<SIDE$} | {}", cell(&l.before), cell(&l.after));
        let _ = writeln!(out, "{}", row.trim_end());
    }
}

/// Returns kind, form and tokens of a block, and the beginning of its text.
fn line(p: &ContextBlock) -> String {
    let start = p.text.chars().take(SIDE).map(|c| if c.is_control() { ' ' } else { c });
    let text = format!("{} {} {}", p.name(), p.tokens, start.collect::<String>());
    text.chars().take(SIDE).collect()
}
