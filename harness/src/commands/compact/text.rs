//! A line per block, the context before beside the one after.

use std::fmt::Write;

use crate::inspect::{Layout, Piece};

use super::{Shown, beside, heading, sentence};

/// Characters of a side.
const SIDE: usize = 58;

/// Everything, strategy by strategy.
pub(super) fn page(shown: &Shown) -> String {
    let mut out = format!("{}\n{}\n\n", heading(shown), beside(shown));
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

fn side_by_side(out: &mut String, l: &Layout) {
    let _ = writeln!(out, "{}", sentence(l));
    let _ = writeln!(out, "{:<SIDE$} | {:<SIDE$}", "before", "after");
    for i in 0..l.before.len().max(l.after.len()) {
        let cell = |all: &[Piece]| all.get(i).map(line).unwrap_or_default();
        let row = format!("{:<SIDE$} | {}", cell(&l.before), cell(&l.after));
        let _ = writeln!(out, "{}", row.trim_end());
    }
}

/// Kind, form and tokens of a block, and how it begins.
fn line(p: &Piece) -> String {
    let start = p.text.chars().take(SIDE).map(|c| if c.is_control() { ' ' } else { c });
    let text = format!("{} {} {}", p.name(), p.tokens, start.collect::<String>());
    text.chars().take(SIDE).collect()
}
