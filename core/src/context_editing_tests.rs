use super::*;
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

use crate::block::{CallRef, Draft, MessageId, Role};
use crate::model::find;
use ItemKind::{Call, Compaction, Other, Result, System, Thinking, User};

impl PromptItem for (ItemKind<'static>, u64) {
    fn kind(&self, _head: bool) -> ItemKind<'_> {
        self.0
    }
    fn tokens(&self, _by: &Counting) -> u64 {
        self.1
    }
    fn cleared(&self, _text: &str) -> Self {
        *self
    }
}

fn model() -> &'static Model {
    crate::model::find(crate::model::DEFAULT_MODEL).unwrap()
}

/// Returns a prompt by words with a size at their end: `S` is the system prompt, `U` the user, `T`
/// thinking, `O` other text, `K` a compaction, `read:a` a call of a tool with its id, and `=a` its
/// result.
fn prompt(words: &'static str) -> Vec<(ItemKind<'static>, u64)> {
    let item = |word: &'static str| {
        let end = word.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let kind = match (&word[..end], word[..end].split_once(':')) {
            (_, Some((name, id))) => Call(id, name),
            ("S", _) => System,
            ("U", _) => User,
            ("T", _) => Thinking,
            ("O", _) => Other,
            ("K", _) => Compaction,
            (result, _) => Result(&result[1..]),
        };
        (kind, word[end..].parse().unwrap())
    };
    words.split(' ').map(item).collect()
}

fn decide(edits: &[ServerEdit], fixed: u64, prompt: &[(ItemKind<'static>, u64)]) -> Decision {
    super::decide(edits, fixed, &Analysis::new(prompt, model()))
}

/// Clears the results of all tools but `web`.
fn clear(trigger: ClearTrigger, keep: usize, clear_at_least: u64) -> ServerEdit {
    let (exclude, inputs) = (vec!["web".into()], ClearInputs::None);
    ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude, inputs }
}

/// Clears results and these inputs, from the first tool use on.
fn clear_all(inputs: ClearInputs) -> ServerEdit {
    let (trigger, exclude) = (ClearTrigger::ToolUses(1), vec!["web".into()]);
    ServerEdit::ClearToolUses { trigger, keep: 0, clear_at_least: 0, exclude, inputs }
}

/// Tokens of the placeholder.
fn placeholder() -> u64 {
    model().counting.block(Size::text(CLEARED))
}

#[test]
fn keeps_the_newest_and_needs_enough() {
    // 10 system + 5 × (call 10 + result 100) = 560 tokens; web results are never cleared.
    let p = prompt("S10 read:a10 =a100 read:b10 =b100 web:w10 =w100 read:c10 =c100 read:d10 =d100");
    let freed = 100 - placeholder();
    let run = |e: ServerEdit| decide(&[e], 0, &p);
    assert_eq!(run(clear(ClearTrigger::InputTokens(561), 1, 0)), Decision::default());
    let d = run(clear(ClearTrigger::InputTokens(560), 1, 0));
    assert_eq!((d.results, d.inputs, d.applied.cleared_tool_uses), (vec![2, 4, 8], vec![], 3));
    assert_eq!(d.applied.cleared_tokens, 3 * freed);
    assert_eq!(run(clear(ClearTrigger::InputTokens(560), 1, 3 * freed + 1)), Decision::default());
    assert_eq!(run(clear(ClearTrigger::InputTokens(560), 4, 0)), Decision::default());
    assert_eq!(run(clear(ClearTrigger::ToolUses(6), 1, 0)), Decision::default());
    assert_eq!(run(clear(ClearTrigger::ToolUses(5), 1, 0)).results, [2, 4, 8]);
}

#[test]
fn arguments_go_where_asked() {
    let p = prompt("read:a50 =a100 edit:b50 =b100");
    let inputs = |inputs| decide(&[clear_all(inputs)], 0, &p).inputs;
    assert_eq!(inputs(ClearInputs::All), [0, 2]);
    assert_eq!(inputs(ClearInputs::Of(vec!["edit".into()])), [2]);
}

#[test]
fn the_next_change_is_at_the_call_whose_arguments_go_and_else_at_the_result() {
    let p = prompt("S10 read:a50 =a100 U5 web:w50 read:b50 =w100 =b100");
    let at =
        |inputs, cleared| change_after(cleared, &[clear_all(inputs)], &Analysis::new(&p, model()));
    assert_eq!(at(ClearInputs::None, 1), Some(7));
    assert_eq!(at(ClearInputs::All, 1), Some(5));
    assert_eq!(at(ClearInputs::Of(vec!["edit".into()]), 1), Some(7));
    assert_eq!(at(ClearInputs::All, 2), None);
}

#[test]
fn thinking_stays_for_the_newest_turns_and_within_a_tool_cycle() {
    let p = prompt("U5 T7 O5 U5 O5 U5 T11 read:a5 =a5 T13 read:b5 =b5");
    let run = |keep| decide(&[ServerEdit::ClearThinking { keep }], 0, &p);
    // The open cycle is one turn: both thinking items are kept, although a result is between them.
    assert_eq!((run(Some(1)).gone, run(Some(1)).applied.thinking_tokens), (vec![1], 7));
    // A turn without thinking does not count.
    assert_eq!(run(Some(2)).gone, [] as [usize; 0]);
    assert_eq!(run(None), Decision::default());
}

/// Three turns with thinking: before a call, after its result and before the answer; before an answer;
/// before a call with a result. The second `U` is a reminder next to the result.
const THREE_TURNS: &str =
    "S10 U10 T7 read:a10 =a10 U10 T8 O10 U10 T9 O10 U10 T11 read:b10 =b10 read:c10 =c10";

#[test]
fn an_older_model_leaves_out_the_thinking_of_earlier_turns() {
    let (old, new) = (find("claude-sonnet-4-5").unwrap(), find("claude-opus-4-6").unwrap());
    let p = prompt(THREE_TURNS);
    let tokens = |m, upto: usize| prompt_tokens(m, &[], &p[..upto]);
    // First turn: everything is kept, with or without a reminder.
    assert_eq!((tokens(old, 5), tokens(old, 6), tokens(old, 8)), (47, 57, 75));
    // The second user message removes 7 and 8, the third also 9. 11 is kept.
    assert_eq!((tokens(new, 9), tokens(old, 9)), (85, 70));
    assert_eq!((tokens(new, 12), tokens(old, 12)), (114, 90));
    assert_eq!((tokens(new, 17), tokens(old, 17)), (165, 141));
    let kinds = |m, edits: &[ServerEdit]| apply(m, edits, 0, p.to_vec()).0.len();
    assert_eq!((kinds(new, &[]), kinds(old, &[])), (17, 14));
    // An edit of thinking overrides the default, which is not an edit.
    let keep = |keep| [ServerEdit::ClearThinking { keep }];
    for (edits, left, cleared, tokens) in
        [(keep(None), 17, 0, 165), (keep(Some(2)), 15, 1, 165), (keep(Some(1)), 14, 2, 165)]
    {
        for m in [old, new] {
            let (shown, applied) = apply(m, &edits, 0, p.to_vec());
            assert_eq!((shown.len(), applied.cleared_thinking_turns), (left, cleared));
            assert_eq!(prompt_tokens(m, &edits, &p), tokens, "before the edit");
        }
    }
    assert_eq!(apply(old, &[], 0, p.to_vec()).1, Applied::default());
    // Another edit counts the visible tokens: 141, not 165.
    let clear = |n| [clear(ClearTrigger::InputTokens(n), 0, 0)];
    let cleared = |m, n| apply(m, &clear(n), 0, p.to_vec()).1.cleared_tool_uses;
    assert_eq!((cleared(old, 141), cleared(old, 142), cleared(new, 165)), (3, 0, 3));
}

#[test]
fn keeping_one_turn_is_the_default_of_the_older_models() {
    let old = find("claude-haiku-4-5").unwrap();
    let p = prompt(THREE_TURNS);
    for upto in 0..=p.len() {
        let p = p[..upto].to_vec();
        let asked = apply(old, &[ServerEdit::ClearThinking { keep: Some(1) }], 0, p.clone());
        assert_eq!(asked.0, apply(old, &[], 0, p).0, "{upto}");
    }
}

proptest! {
    #[test]
    fn leaving_thinking_out_makes_no_prompt_larger(
        kinds in prop::collection::vec(0..6usize, 0..40),
    ) {
        let what = [System, User, Thinking, Call("a", "t"), Result("a"), Other];
        let p: Vec<_> =
            kinds.iter().enumerate().map(|(i, &k)| (what[k], i as u64 + 1)).collect();
        let all: u64 = p.iter().map(|x| x.1).sum();
        let (old, new) = (find("claude-sonnet-4-5").unwrap(), find("claude-opus-4-6").unwrap());
        prop_assert_eq!(prompt_tokens(new, &[], &p), all);
        let left = visible(old, &[], p.clone());
        let counted: u64 = left.iter().map(|x| x.1).sum();
        prop_assert_eq!(prompt_tokens(old, &[], &p), counted);
        // Only thinking is removed, and none after the last user message.
        let rest = |p: &[(ItemKind<'static>, u64)]| -> Vec<u64> {
            p.iter().filter(|x| x.0 != Thinking).map(|x| x.1).collect()
        };
        prop_assert_eq!(rest(&left), rest(&p));
        let behind = p.iter().rposition(|x| x.0 == User).map_or(0, |i| i + 1);
        prop_assert!(left.ends_with(&p[behind..]));
        // A longer conversation drops at least the same items.
        let dropped = |upto: usize| {
            let part = p[..upto].to_vec();
            let left = visible(old, &[], part.clone());
            part.into_iter().filter(|x| !left.contains(x)).collect::<Vec<_>>()
        };
        for (upto, next) in p.iter().enumerate() {
            let (shorter, longer) = (dropped(upto), dropped(upto + 1));
            // Unless a result shows that the user message is inside a tool cycle.
            let undone = next.0 == Result("a");
            prop_assert!(undone || shorter.iter().all(|x| longer.contains(x)));
        }
    }
}

#[test]
fn what_stands_before_the_last_compaction_is_ignored_and_not_counted() {
    let p = prompt("S10 U90 t:a10 =a90 K20 t:b10 =b60");
    let d = decide(&[clear(ClearTrigger::InputTokens(101), 0, 0)], 0, &p);
    assert_eq!((d.gone, d.results), (vec![1, 2, 3], vec![]));
    let d = decide(&[clear(ClearTrigger::InputTokens(100), 0, 0)], 0, &p);
    assert_eq!(d.results, [6]);
}

#[test]
fn deleted_results_are_the_named_ones_only() {
    let output = |id: &str| {
        let mut d = Draft::text(BlockKind::Output, Role::Tool, id);
        d.call = Some(Arc::new(CallRef { id: id.into(), name: "t".into() }));
        d.build(MessageId(0), vec![])
    };
    let edits = [ServerEdit::CacheEdits { results: vec!["b".into()] }];
    let shown: Vec<String> = without_results(vec![output("a"), output("b")], &edits)
        .iter()
        .map(|b| b.text.to_string())
        .collect();
    assert_eq!(shown, ["a", CLEARED]);
}
