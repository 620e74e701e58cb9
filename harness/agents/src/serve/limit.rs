//! Limit on the size of a reply, measured like billed output.

use ctxbench_core::model::Counting;
use ctxbench_core::prelude::*;
use ctxbench_core::tokens::Size;

/// Cuts a reply to `max_tokens`. A text is cut at the limit, but keeps its first word, as no model
/// sends an empty reply. A call that does not fit is removed with everything after it.
pub(super) fn limit(by: &Counting, parts: Vec<Part>, max_tokens: u64) -> (Vec<Part>, StopReason) {
    let mut left = max_tokens;
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        let cost = by.block(part.size());
        if cost <= left {
            left -= cost;
            kept.push(part);
            continue;
        }
        if let Part::Text(t) = &part {
            let mut text = longest(by, t, left);
            if text.is_empty() && kept.is_empty() {
                text = first_word(t).into();
            }
            if !text.is_empty() {
                kept.push(Part::Text(text));
            }
        }
        return (kept, StopReason::MaxTokens);
    }
    let calls = kept.iter().any(|p| matches!(p, Part::Call(_)));
    (kept, if calls { StopReason::ToolUse } else { StopReason::EndTurn })
}

/// The longest beginning of a text that costs at most `tokens`; tokens of a beginning hardly ever
/// fall as it grows.
fn longest(by: &Counting, text: &str, tokens: u64) -> Arc<str> {
    let ends: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
    let fits = |end: &usize| by.block(Size::text(&text[..*end])) <= tokens;
    let at = ends.partition_point(fits);
    if at == 0 { "".into() } else { text[..ends[at - 1]].into() }
}

fn first_word(text: &str) -> &str {
    let begin = text.len() - text.trim_start().len();
    let end = text[begin..].find(char::is_whitespace).map_or(text.len(), |i| begin + i);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::content::ToolCall;

    fn text(t: &str) -> Part {
        Part::Text(t.into())
    }

    #[test]
    fn a_reply_ends_where_its_tokens_do() {
        // "one two three four five six" is six tokens of o200k, and any block costs four more.
        let parts = || vec![text("one two three four five six")];
        assert_eq!(limit(&Counting::O200K, parts(), u64::MAX), (parts(), StopReason::EndTurn));
        assert_eq!(limit(&Counting::O200K, parts(), 10), (parts(), StopReason::EndTurn));
        assert_eq!(
            limit(&Counting::O200K, parts(), 7),
            (vec![text("one two three")], StopReason::MaxTokens)
        );
        assert_eq!(limit(&Counting::O200K, parts(), 1), (vec![text("one")], StopReason::MaxTokens));
        let call =
            || Part::Call(ToolCall { id: "a".into(), name: "t".into(), arguments: "{}".into() });
        assert_eq!(
            limit(&Counting::O200K, vec![text("one"), call()], u64::MAX).1,
            StopReason::ToolUse
        );
        assert_eq!(
            limit(&Counting::O200K, vec![text("one"), call()], 6),
            (vec![text("one")], StopReason::MaxTokens)
        );
    }
}
