//! `aider@described-003`: Aider according to its published description
//! (docs/sources/token-budgeting.md §2, docs/sources/chat-history.md §2), which differs from the
//! current program.
//!
//! | | described | observed (docs/sources/aider.md §1) |
//! |---|---|---|
//! | moved to history | every finished turn | a turn with an edit |
//! | tail | the newest messages within half of the budget | fewer than half, and the head must end with the model |
//! | head | all of it | cut at the summariser's input limit, the newest part dropped |
//! | short lists | no special case | lists of up to four messages are summarised whole |
//! | recursion | while summary and tail exceed the budget, to depth 3, the tail kept | the second pass takes summary and tail together |
//! | answer `Ok.`, notice of a commit | not mentioned | appended |
//! | summarising model | the weak model | the weak model, then the main one |
//! | failure | full history kept | kept, or emptied when nothing was appended meanwhile |
//! | finished summary | applied at once, followed by the messages added meanwhile | thrown away after every edit turn |
//! | counting | exact tokens of the content | tokens of the JSON text |
//! | oversize | above the window | from the window on |

use ctxbench_core::tokens::o200k;

use super::rules::{SummaryPlan, TokenCount};

/// Maximum depth of the recursion (docs/sources/token-budgeting.md §2.4).
const MAX_DEPTH: u32 = 3;

/// Counts the exact tokens of the contents.
pub(crate) const CONTENTS: TokenCount =
    TokenCount { message: |m| o200k(&m.text), list: |m| o200k(&m.text) };

/// Keeps the newest messages within half of the budget and summarises all others.
pub(crate) fn plan(sizes: &[u64], max_tokens: f64, depth: u32) -> SummaryPlan {
    if depth > MAX_DEPTH || (depth == 0 && sizes.iter().sum::<u64>() as f64 <= max_tokens) {
        return SummaryPlan::Keep;
    }
    let mut total = 0;
    let stays = |size: &&u64| {
        total += **size;
        total as f64 <= max_tokens / 2.0
    };
    let tail = sizes.len() - sizes.iter().rev().take_while(stays).count();
    SummaryPlan::Split { keep: tail, tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aider::job::tests::finished;
    use crate::aider::rules::{ChatLine, SummaryRules};

    /// Returns messages of ten tokens each.
    fn talk(n: usize) -> Vec<ChatLine> {
        let line = |i: usize| ChatLine::new(["user", "assistant"][i % 2], ["word"; 10].join(" "));
        (0..n).map(line).collect()
    }

    /// Returns the history after a summary.
    fn list(
        messages: &[ChatLine],
        max_tokens: f64,
        ask: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Vec<ChatLine> {
        let prefix = "[chat summary] ".into();
        let (head_limit, count, described) = (0, CONTENTS, true);
        let rules = SummaryRules { max_tokens, head_limit, prefix, count, described };
        let job = finished(messages, &rules, ask).unwrap();
        job.summary().into_iter().chain(&messages[job.tail()..]).cloned().collect()
    }

    #[test]
    fn the_newest_half_stays_and_the_rest_is_one_message() {
        // 120 tokens exceed the budget of 100. Five messages of ten tokens fill half of it, and
        // seven become the summary. A head limit of 0 cuts nothing.
        assert_eq!((CONTENTS.message)(&talk(1)[0]), 10);
        let mut asked = Vec::new();
        let s = list(&talk(12), 100.0, &mut |t| {
            asked.push(t.to_string());
            Some("short".into())
        });
        assert_eq!(asked.len(), 1);
        assert_eq!(
            asked[0].matches("# USER\n").count() + asked[0].matches("# ASSISTANT\n").count(),
            7
        );
        assert_eq!(s[0], ChatLine::new("user", "[chat summary] short"));
        assert_eq!(s[1..], talk(12)[7..]);
        // A history equal to the budget is not too large.
        assert_eq!(list(&talk(10), 100.0, &mut |_| None), talk(10));
        // Three messages are split like any other list. One fits into half of a budget of twelve
        // tokens.
        let s = list(&talk(3), 20.0, &mut |_| Some("s".into()));
        assert_eq!(s[1..], talk(3)[2..]);
    }

    #[test]
    fn it_goes_on_to_depth_three_and_keeps_the_tail() {
        // Every answer exceeds the budget, so depths 0, 1, 2 and 3 send a request. The tail of five
        // messages stays in all of them.
        let mut asked = 0;
        let s = list(&talk(12), 100.0, &mut |_| {
            asked += 1;
            Some("long ".repeat(200))
        });
        assert_eq!((asked, s.len()), (4, 6));
        assert_eq!(s[1..], talk(12)[7..]);
    }
}
