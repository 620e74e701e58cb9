use super::*;
use crate::aider::rules::{
    Ending, MIN_SPLIT, TokenCount, ending, head_limit, history_budget, plan,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summarised {
    pub(crate) messages: Vec<ChatLine>,
    /// True if the caller's own list was extended, because nothing was summarised and it ended with
    /// the user.
    pub(crate) input_changed: bool,
    pub(crate) depth: u32,
}

/// Runs a job to its end. `ask` returns `None` if every model failed; the result is then the depth
/// that the recursion reached.
pub(crate) fn finished(
    messages: &[ChatLine],
    rules: &SummaryRules,
    ask: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<Job, u32> {
    let mut job = Job::new(messages.to_vec(), rules.clone());
    let mut next = job.start();
    while let Some(text) = next {
        next = job.answer(&ask(&text).ok_or(job.depth)?);
    }
    Ok(job)
}

/// Runs the whole procedure of the program, which adds an answer to a history that does not end with
/// the model (docs/sources/aider.md §1.1).
pub(crate) fn summarize(
    messages: &[ChatLine],
    rules: &SummaryRules,
    ask: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<Summarised, u32> {
    let job = finished(messages, rules, ask)?;
    let mut out = job.list();
    let answered = out.last().is_some_and(|m| m.role != "assistant");
    if answered {
        out.push(ChatLine::new("assistant", "Ok."));
    }
    let input_changed = answered && job.summary().is_none();
    Ok(Summarised { messages: out, input_changed, depth: job.depth })
}

fn quarter(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Counts as a recording does (`token_rule`): one token per four code points of the content, or of
/// the JSON text of the message.
pub(crate) const BY_CONTENT: TokenCount =
    TokenCount { message: |m| quarter(&m.text), list: |m| quarter(&m.text) };
pub(crate) const BY_JSON: TokenCount =
    TokenCount { message: |m| quarter(&m.json()), list: |m| quarter(&m.json()) };

#[test]
fn messages_count_as_in_the_program() {
    // `encode` of the JSON text and `token_counter` of LiteLLM 1.81.10 for openai/gpt-5.5.
    let m = ChatLine::new("user", "Wörter übersetzen: 日本語");
    assert_eq!([(EXACT.message)(&m), (EXACT.list)(&m)], [39, 19]);
}

/// Returns `n` pairs `u0 lorem…`, `a0 lorem…`, … of 40 characters or 10 tokens each, as in the
/// recordings.
fn pairs(n: usize) -> Vec<ChatLine> {
    let line = |i: usize| {
        let (role, letter) = [("user", "u"), ("assistant", "a")][i % 2];
        let text = format!("{letter}{} lorem ipsum dolor sit amet lorem ipsum", i / 2);
        ChatLine::new(role, text.chars().take(40).collect::<String>())
    };
    (0..n).map(line).collect()
}

fn rules(max: f64) -> SummaryRules {
    SummaryRules {
        max_tokens: max,
        head_limit: head_limit(None, 1.0),
        prefix: "Before this:\n".into(),
        count: BY_CONTENT,
        described: false,
    }
}

#[test]
fn a_second_pass_may_fail_where_the_first_did_not() {
    // 20 messages of ten tokens, with a limit of 100. The first answer of 400 characters is too
    // long with its tail of four, and the second request fails at depth 1.
    let mut answers = vec![None, Some("x".repeat(400))];
    let failed = summarize(&pairs(20), &rules(100.0), &mut |_| answers.pop().unwrap());
    assert_eq!(failed, Err(1));
}

#[test]
fn a_background_summary_ends_as_intended() {
    let snapshot = [1, 2, 3];
    assert_eq!(ending(&[1, 2, 3, 4, 5], &snapshot, true, false), Ending::Applied);
    assert_eq!(ending(&snapshot, &snapshot, false, false), Ending::Discarded);
    assert_eq!(ending(&[1, 7], &snapshot, true, false), Ending::Discarded);
}

#[test]
fn json_text_escapes_as_python_does() {
    let m = ChatLine::new("user", "a\"b\\\n\té😀\u{7f}");
    assert_eq!(
        m.json(),
        "{\"role\": \"user\", \"content\": \"a\\\"b\\\\\\n\\t\\u00e9\\ud83d\\ude00\\u007f\"}"
    );
}

#[test]
fn budgets_of_known_windows() {
    // docs/sources/aider.md §1.3
    let b = |w| history_budget(w, 1_024, 8_192);
    assert_eq!([b(128_000), b(200_000), b(0)], [8_000.0, 8_192.0, 1_024.0]);
}

fn talk(n: usize) -> Vec<ChatLine> {
    let line = |i: usize| ChatLine::new(["user", "assistant"][i % 2], ["word"; 10].join(" "));
    (0..n).map(line).collect()
}

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
    assert_eq!(asked[0].matches("# USER\n").count() + asked[0].matches("# ASSISTANT\n").count(), 7);
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

proptest! {
    #[test]
    fn a_plan_never_splits_after_a_user(sizes in prop::collection::vec(0u64..80, 0..30), seed in any::<u32>(), max in 1.0f64..400.0) {
        let assistant: Vec<bool> = (0..sizes.len()).map(|i| seed >> (i % 32) & 1 == 1).collect();
        match plan(&sizes, &assistant, max, 3_584, 0) {
            SummaryPlan::Keep => prop_assert!(sizes.iter().sum::<u64>() as f64 <= max),
            SummaryPlan::All => prop_assert!(sizes.iter().sum::<u64>() as f64 > max),
            SummaryPlan::Split { keep, tail } => {
                prop_assert!(keep <= tail && tail > MIN_SPLIT && tail <= sizes.len());
                prop_assert!(assistant[tail - 1]);
            }
        }
    }

    #[test]
    fn the_job_ends_and_the_tail_is_verbatim(n in 0usize..60, max in 10.0f64..500.0, pad in 0usize..900) {
        let mut asked = 0;
        let answer = &mut |_: &str| {
            asked += 1;
            Some(format!("{:x<pad$}", "SUMMARY"))
        };
        let r = summarize(&pairs(n), &rules(max), answer).unwrap();
        prop_assert!(asked <= 2);
        let tail: Vec<_> = r.messages.iter().filter(|m| pairs(n).contains(m)).cloned().collect();
        prop_assert!(pairs(n).ends_with(&tail));
    }
}
