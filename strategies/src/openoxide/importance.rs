//! Importance of old tool results in OpenOxide (docs/sources/opencode-vs-claude-code.md §10.8:
//! decisions and errors before the rest). The design defines no measure, so this one is our choice.
//! It uses only the conversation and no model.

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind};

/// Importance of a result, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// No sign of importance.
    Plain,
    /// A later message or call mentions a name that this result was the first to contain.
    Used,
    /// The tool failed. Without the result the model may repeat the failure.
    Error,
}

/// Minimum length of a name in bytes. Shorter ones match by chance.
const SHORTEST: usize = 6;

/// Returns the ranks of the results at these positions of a view.
pub fn importance(blocks: &[Arc<Block>], places: &[usize]) -> HashMap<usize, Rank> {
    let mut ranks: HashMap<usize, Rank> = places
        .iter()
        .map(|&i| (i, if blocks[i].is_error { Rank::Error } else { Rank::Plain }))
        .collect();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (i, b) in blocks.iter().enumerate() {
        let speaks = matches!(b.kind, BlockKind::User | BlockKind::Assistant | BlockKind::Call);
        for word in names(&b.text) {
            let shown = *first.entry(word).or_insert(i);
            if let Some(rank) = ranks.get_mut(&shown).filter(|_| speaks && shown < i) {
                *rank = Rank::Used.max(*rank);
            }
        }
    }
    ranks
}

/// Splits out names: paths, identifiers, numbers with a unit, hashes. Ordinary prose contains none
/// of the characters that mark them.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_alphanumeric() || "_./:-".contains(c);
    text.split(move |c| !inside(c))
        .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|w| w.len() >= SHORTEST && w.chars().any(|c| c.is_numeric() || "_/.:".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block;

    #[test]
    fn errors_come_first_then_what_is_named_later() {
        use BlockKind::{Assistant, Call, Output, User};
        let view = [
            block(User, 0, "look at src/known.rs"),
            block(Output, 0, "src/known.rs is long"),
            block(Output, 0, "the pool is pool_size_max, see src/pool.rs"),
            block(Output, 0, "E0433 unresolved").map_draft(|d| d.is_error = true),
            block(Output, 0, "nobody names port 8443-internal"),
            block(Assistant, 0, "src/known.rs was known before the result"),
            block(Call, 0, "{\"path\":\"src/pool.rs\"}"),
        ];
        let ranks = importance(&view, &[1, 2, 3, 4]);
        let want = [Rank::Plain, Rank::Used, Rank::Error, Rank::Plain];
        assert_eq!([1, 2, 3, 4].map(|i| ranks[&i]), want);
        assert!(Rank::Error > Rank::Used && Rank::Used > Rank::Plain);
    }

    #[test]
    fn prose_names_nothing() {
        assert_eq!(names("a sentence. Another one, longer").count(), 0);
        assert_eq!(
            names("(src/a.rs), v1.2.34: 12 MB").collect::<Vec<_>>(),
            ["src/a.rs", "v1.2.34"]
        );
    }
}
