//! Codex CLI's items: the blocks of one item, their form in a prompt, and the items that a
//! compaction keeps (docs/sources/codex.md §1.4, §2, §3).

use ctxbench_core::prelude::*;
use rapidhash::RapidHashSet as HashSet;

use super::rules::{Release, cut_message, estimate_items, item_groups};
use crate::shared::joined;

/// Output of a call without an output (docs/sources/codex.md §3).
const ABORTED: &str = "aborted";
/// Placeholder for a tool output that does not fit into the provider's compaction
/// (docs/sources/codex.md §2).
const BLANKED: &str = "Output exceeded the available model context and was truncated";

/// Returns the blocks of a prompt: a call without an output gets one right after it, an output
/// without a call is left out. The history itself does not change.
pub(crate) fn normalised(blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let ids = |kind| {
        blocks
            .iter()
            .filter(move |b| b.kind == kind)
            .filter_map(|b| b.call_id())
            .collect::<HashSet<&str>>()
    };
    let (calls, answered) = (ids(BlockKind::Call), ids(BlockKind::Output));
    let mut out = Vec::with_capacity(blocks.len());
    for b in blocks {
        match (b.kind, b.call_id()) {
            (BlockKind::Output, Some(id)) if !calls.contains(id) => {}
            (BlockKind::Call, Some(id)) if !answered.contains(id) => {
                out.push(b.clone());
                let draft = Draft {
                    call: b.call.clone(),
                    ..Draft::synthetic(BlockKind::Output, Role::Tool, ABORTED)
                };
                out.push(draft.build(b.message, vec![]));
            }
            _ => out.push(b.clone()),
        }
    }
    out
}

/// Shows the base instructions at this version's position, then the context.
pub(crate) fn show_fixed(release: Release, s: &mut Engine) {
    let role = if release == Release::V169 { Role::Developer } else { Role::Instructions };
    for b in &s.fixed.base.clone() {
        s.show(b.map_draft(|d| d.role = role));
    }
    for b in &s.fixed.context.clone() {
        s.show(b.clone());
    }
}

/// Builds a normal request as the program sends it.
pub(crate) fn sample_request(s: &Engine) -> Request {
    let blocks = normalised(s.context.blocks());
    Request { breakpoints: s.breakpoints(&blocks), blocks, ..s.sample_request() }
}

/// Requests a summary: sends the history with a prompt, or with a trigger if the provider compacts
/// (`remote`); the request then includes tools, and a refusal is final. If it is refused as too long,
/// it is repeated without its oldest item (docs/sources/codex.md §1.5, §2). `retries` = maximum after
/// transient failures.
pub(crate) async fn request_summary(
    s: &mut Engine,
    phase: Phase,
    mut items: Vec<Arc<Block>>,
    prompt: Arc<Block>,
    remote: bool,
    retries: u64,
) -> Result<Reply, ModelError> {
    let is_retryable: fn(&ModelError) -> bool = match remote {
        true => |e| !e.is_overflow() && e.kind != ErrorKind::Invalid,
        false => |e| !e.is_overflow(),
    };
    loop {
        let blocks = normalised(&items).into_iter().chain([prompt.clone()]).collect();
        let request = s.summary_request(phase, blocks, remote);
        match s.send_retrying(&request, retries, is_retryable).await {
            Err(e) if e.is_overflow() && !remote && remove_first(&mut items) => {}
            result => return result,
        }
    }
}

/// Removes the first item that is not the base, and the partner of a call or output. Returns false
/// if nothing is left.
pub(crate) fn remove_first(items: &mut Vec<Arc<Block>>) -> bool {
    let Some(first) = items.iter().position(|b| b.kind != BlockKind::Base) else { return false };
    remove_item(items, first);
    true
}

/// Removes the item that begins at an index with all its parts, and the partner of a call or
/// output.
pub(crate) fn remove_item(items: &mut Vec<Arc<Block>>, at: usize) {
    let size = |items: &[Arc<Block>]| item_groups(items).next().map_or(1, <[_]>::len);
    let end = at + size(&items[at..]);
    let id = items[at].call_id().map(str::to_string);
    items.drain(at..end);
    if id.is_some()
        && let Some(partner) = items.iter().position(|b| b.call_id() == id.as_deref())
    {
        let end = partner + size(&items[partner..]);
        items.drain(partner..end);
    }
}

/// Shortens a request in which the provider compacts while the estimate exceeds the usable window:
/// blanks outputs at the end, or before 0.169 drops them with their calls. Stops at the first other
/// item (docs/sources/codex.md §2).
pub(crate) fn fit_into_window(
    release: Release,
    items: &mut Vec<Arc<Block>>,
    base_tokens: u64,
    usable: u64,
) {
    let mut end = items.len();
    while end > 0 && base_tokens + estimate_items(release, items) > usable {
        let last = items[end - 1].clone();
        if last.kind != BlockKind::Output {
            return;
        }
        end -= 1;
        if release == Release::V169 {
            items[end] = last.with_text(BlockForm::Truncated, BLANKED);
        } else {
            items.pop();
            items.retain(|b| b.kind != BlockKind::Call || b.call_id() != last.call_id());
            end = items.len();
        }
    }
}

/// Returns the blocks of the user messages that a compaction keeps within a budget, oldest first.
///
/// Before 0.169 only one text per message is kept, without images. 0.169 keeps images; with
/// compaction by the provider, a message of images only costs one token.
pub(crate) fn kept_users(
    release: Release,
    blocks: &[Arc<Block>],
    budget: u64,
    remote: bool,
) -> Vec<Vec<Arc<Block>>> {
    let said = |g: &&[Arc<Block>]| {
        g.iter().any(|b| matches!(b.kind, BlockKind::User | BlockKind::Image))
            && g[0].kind != BlockKind::Output
    };
    let messages: Vec<Vec<Arc<Block>>> =
        item_groups(blocks).filter(said).filter_map(|g| as_kept(release, g)).collect();
    let least = u64::from(remote);
    let size =
        |m: &Vec<Arc<Block>>| m.iter().map(|b| bytes_div4_up(&b.text)).sum::<u64>().max(least);
    let (mut kept, mut left) = (Vec::new(), budget);
    for message in messages.into_iter().rev() {
        if left == 0 {
            break;
        }
        let size = size(&message);
        kept.push(if size > left { cut_blocks(release, &message, left) } else { message });
        left -= size.min(left);
    }
    kept.reverse();
    kept
}

/// Returns a message in the form that this version stores after a compaction: its blocks, or one
/// text.
fn as_kept(release: Release, message: &[Arc<Block>]) -> Option<Vec<Arc<Block>>> {
    if release == Release::V169 {
        return Some(message.to_vec());
    }
    let texts: Vec<&Arc<Block>> = message.iter().filter(|b| b.kind == BlockKind::User).collect();
    match texts[..] {
        [] => None,
        [one] => Some(vec![one.clone()]),
        [first, ..] => {
            let joined: String = texts.iter().map(|b| &*b.text).collect();
            let origin: Origins = texts.iter().map(|b| &b.origin).collect();
            let draft = Draft { text: joined.into(), ..Draft::text(first.kind, first.role, "") };
            Some(vec![draft.build(first.message, origin)])
        }
    }
}

/// Spends a token budget on the texts of one message in order. The first text that does not fit is
/// cut in the middle, later ones are dropped, and images are kept.
fn cut_blocks(release: Release, message: &[Arc<Block>], mut tokens: u64) -> Vec<Arc<Block>> {
    let mut out = Vec::new();
    for b in message {
        let size = bytes_div4_up(&b.text);
        if b.kind != BlockKind::User || size <= tokens {
            tokens -= size.min(tokens);
            out.push(b.clone());
        } else if tokens > 0 {
            out.push(cut_block(release, b, tokens));
            tokens = 0;
        }
    }
    out
}

fn cut_block(release: Release, b: &Arc<Block>, tokens: u64) -> Arc<Block> {
    let (text, splits) = joined(&cut_message(release, &b.text, tokens));
    b.map_draft(|d| {
        (d.text, d.splits, d.form) = (text.into(), splits, BlockForm::Truncated);
    })
}

/// Builds the history after a compaction: base, user messages, context at this version's position,
/// and the summary last (docs/sources/codex.md §0).
pub(crate) fn layout(
    release: Release,
    before: &[Arc<Block>],
    context: &[Arc<Block>],
    mut users: Vec<Vec<Arc<Block>>>,
    summary: Arc<Block>,
) -> Vec<Arc<Block>> {
    let at = if release == Release::V169 { users.len().saturating_sub(1) } else { 0 };
    users.insert(at, context.to_vec());
    let mut out: Vec<Arc<Block>> =
        before.iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
    out.extend(users.into_iter().flatten());
    out.push(summary);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, call_block, image_block, texts};
    use proptest::prelude::*;

    fn call(kind: BlockKind, id: &str, text: &str) -> Arc<Block> {
        call_block(kind, id, "exec", text)
    }

    #[test]
    fn prompts_show_calls_and_outputs_in_pairs() {
        use BlockKind::{Call, Output, User};
        let history = [
            call(Call, "a", "A"),
            call(Call, "b", "B"),
            call(Output, "b", "ob"),
            call(Output, "z", "oz"),
            block(User, 1, "U"),
        ];
        let shown = normalised(&history);
        assert_eq!(texts(&shown), ["A", "aborted", "B", "ob", "U"]);
        assert_eq!((shown[1].kind, shown[1].call_id()), (Output, Some("a")));
    }

    #[test]
    fn the_oldest_item_goes_with_its_partner_and_with_all_its_parts() {
        use BlockKind::{Assistant, Base, Call, Output, User};
        let mut items = vec![
            block(Base, 0, "B"),
            block(User, 1, "U"),
            image_block(1),
            call(Call, "a", "A"),
            block(Assistant, 2, "r"),
            call(Output, "a", "o"),
        ];
        assert!(remove_first(&mut items));
        assert_eq!(texts(&items), ["B", "A", "r", "o"]);
        assert!(remove_first(&mut items));
        assert_eq!(texts(&items), ["B", "r"]);
        assert!(remove_first(&mut items) && !remove_first(&mut items));
    }

    #[test]
    fn outputs_at_the_end_are_blanked_until_the_rest_fits() {
        use BlockKind::{Call, Output, User};
        // 4,000 bytes and the ID are 1,001 tokens each; the placeholder and the ID are 16.
        let long = "x".repeat(4_000);
        let history = || {
            let outputs = ["a", "b", "c"].map(|id| call(Output, id, &long));
            let calls = ["a", "b", "c"].map(|id| call(Call, id, ""));
            [&[block(User, 1, "U")], &calls[..], &outputs[..]].concat()
        };
        let blanked = |base, usable| {
            let mut items = history();
            fit_into_window(Release::V169, &mut items, base, usable);
            items.iter().filter(|b| b.kind == Output).map(|b| b.text.len()).collect::<Vec<_>>()
        };
        // 1 for the message, 1 for each call's name: 3,007 in all.
        assert_eq!(estimate_items(Release::V169, &history()), 3_007);
        assert_eq!(BLANKED.len(), 61);
        assert_eq!(blanked(0, 3_007), [4_000, 4_000, 4_000]);
        assert_eq!(blanked(1, 3_007), [4_000, 4_000, 61]);
        assert_eq!(blanked(1_000, 3_007), [4_000, 61, 61]);
        assert_eq!(blanked(9_000, 3_007), [61, 61, 61]);
        // An output before another item is not changed.
        let mut items = history();
        items.push(block(User, 2, "U2"));
        fit_into_window(Release::V169, &mut items, 9_000, 3_007);
        assert_eq!(items[6].text.len(), 4_000);
        // Before 0.169, both the output and the call are removed.
        let mut items = history();
        let one_less = estimate_items(Release::V104, &history()) - 1;
        fit_into_window(Release::V104, &mut items, 0, one_less);
        assert_eq!(
            items.iter().map(|b| b.call_id()).collect::<Vec<_>>(),
            [None, Some("a"), Some("b"), Some("a"), Some("b")]
        );
    }

    #[test]
    fn a_message_of_images_costs_one_token_where_the_provider_compacts() {
        let history =
            [block(BlockKind::User, 1, "old"), image_block(2), block(BlockKind::User, 3, "new")];
        let kept = |budget, remote| {
            let messages = kept_users(Release::V169, &history, budget, remote);
            messages.iter().map(|m| m[0].message.0).collect::<Vec<_>>()
        };
        assert_eq!(kept(2, true), [2, 3]);
        assert_eq!(kept(1, true), [3]);
        assert_eq!(kept(2, false), [1, 2, 3]);
    }

    #[test]
    fn text_and_image_stay_together_behind_the_context() {
        let history = [
            block(BlockKind::User, 1, "U1"),
            block(BlockKind::User, 2, "U2"),
            image_block(2),
            block(BlockKind::Summary, 3, "S"),
        ];
        let after = |release| {
            let users = kept_users(release, &history, 100, false);
            let new = layout(
                release,
                &history,
                &[block(BlockKind::Context, 0, "C")],
                users,
                block(BlockKind::Summary, 4, "S2"),
            );
            new.iter().map(|b| b.kind).collect::<Vec<_>>()
        };
        use BlockKind::{Context, Image, Summary, User};
        assert_eq!(after(Release::V169), [User, Context, User, Image, Summary]);
        assert_eq!(after(Release::V104), [Context, User, User, Summary]);
    }

    #[test]
    fn a_cut_spends_the_budget_on_the_parts_in_order() {
        let message = [
            block(BlockKind::User, 1, "abcdef"),
            image_block(1),
            block(BlockKind::User, 1, "uvwxyz"),
        ];
        let kept = kept_users(Release::V169, &message, 3, true).concat();
        // Two tokens for the first text, one for the second: 4 bytes, 2 at each end.
        assert_eq!(texts(&kept), ["abcdef", "", "uv…1 tokens truncated…yz"]);
    }

    proptest! {
        #[test]
        fn kept_users_never_exceed_the_budget(sizes in prop::collection::vec(0usize..50, 0..20), budget in 0u64..200) {
            let said = (0..).zip(&sizes).map(|(i, n)| {
                Draft::text(BlockKind::User, Role::User, "xxxx".repeat(*n)).build(MessageId(i), vec![])
            });
            let kept = kept_users(Release::V104, &said.collect::<Vec<_>>(), budget, false).concat();
            let is_cut = |b: &&Arc<Block>| b.form == BlockForm::Truncated;
            let whole = kept.iter().filter(|b| !is_cut(b)).map(|b| bytes_div4_up(&b.text)).sum::<u64>();
            prop_assert!(whole <= budget);
            prop_assert!(kept.iter().filter(is_cut).count() <= 1);
        }
    }
}
