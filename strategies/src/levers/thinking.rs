//! A budget of thinking: what a reply thinks beyond it is not written, so it is neither paid as
//! output nor shown again (MAX_THINKING_TOKENS of Claude Code, docs/sources/token-budgeting.md
//! §5.9).

use std::sync::Arc;

use ctxbench_core::content::Part;
use ctxbench_core::session::Entry;
use ctxbench_core::tokens::{Encoding, count_uncached};

/// Cuts the thinking of each reply to so many o200k tokens in all; 0 = none. Thinking that a
/// recording holds sealed only stays as it is.
pub(super) fn cut(entries: &mut [Entry], most: u64) {
    for e in entries {
        let Entry::Assistant(a) = e else { continue };
        let mut left = most;
        a.reasoning = a.reasoning.take().and_then(|t| within(&t, &mut left));
        let Some(parts) = &mut a.parts else { continue };
        *parts = std::mem::take(parts)
            .into_iter()
            .filter_map(|p| match p {
                Part::Reasoning { text, encrypted } if !text.is_empty() => {
                    let text = within(&text, &mut left)?;
                    Some(Part::Reasoning { text, encrypted })
                }
                other => Some(other),
            })
            .collect();
    }
}

/// The beginning of a text that fits what is left, and what is left then; `None` = nothing of it.
fn within(text: &str, left: &mut u64) -> Option<Arc<str>> {
    let tokens = |t: &str| count_uncached(Encoding::O200k, t);
    let ends: Vec<usize> = text.char_indices().map(|(i, c)| i + c.len_utf8()).collect();
    let whole = tokens(text) <= *left;
    let fit =
        if whole { ends.len() } else { ends.partition_point(|&e| tokens(&text[..e]) <= *left) };
    let shown = &text[..*ends.get(fit.checked_sub(1)?)?];
    *left -= tokens(shown).min(*left);
    Some(shown.into())
}
