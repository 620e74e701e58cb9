use super::*;
use crate::aider::rules::{
    Ending, MIN_SPLIT, TokenCount, ending, head_limit, history_budget, plan,
};
use proptest::prelude::*;

/// Result of a summarisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summarised {
    /// Messages of the new history.
    pub(crate) messages: Vec<ChatLine>,
    /// True if the caller's own list was extended, because nothing was summarised and it ended with
    /// the user.
    pub(crate) input_changed: bool,
    /// Depth that the recursion reached.
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

const PREFIX: &str = "<summary prefix>-----------------------------------\n";

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
        prefix: PREFIX.into(),
        count: BY_CONTENT,
        described: false,
    }
}

/// Runs a case with the recordings' summariser and returns the result with the sizes of its
/// prompts.
fn run(
    messages: &[ChatLine],
    rules: &SummaryRules,
    template: &str,
    pad: usize,
) -> (Result<Summarised, u32>, Vec<usize>) {
    let mut asked = Vec::new();
    let result = summarize(messages, rules, &mut |text| {
        asked.push(text.chars().count());
        let s = template
            .replace("{n}", &asked.len().to_string())
            .replace("{chars}", &text.chars().count().to_string());
        Some(format!("{s:x<pad$}"))
    });
    (result, asked)
}

const PLAIN: &str = "SUMMARY {n} ({chars} chars)";

/// Runs with answers in order; `None` = every model failed.
fn answered(
    messages: &[ChatLine],
    rules: &SummaryRules,
    answers: &[Option<&str>],
) -> (Result<Summarised, u32>, usize) {
    let mut asked = 0;
    let result = summarize(messages, rules, &mut |_| {
        asked += 1;
        answers[asked - 1].map(str::to_string)
    });
    (result, asked)
}

#[test]
fn a_second_pass_may_fail_where_the_first_did_not() {
    // 20 messages of ten tokens, with a limit of 100. The first answer of 400 characters is too
    // long with its tail of four, and the second request fails at depth 1.
    let long = "x".repeat(400);
    assert_eq!(answered(&pairs(20), &rules(100.0), &[Some(&long), None]), (Err(1), 2));
}

#[test]
fn what_the_head_drops_is_never_read() {
    // A head limit of 35 keeps three of the sixteen messages.
    let cut = SummaryRules { head_limit: 35, ..rules(100.0) };
    let (r, asked) = answered(&pairs(20), &cut, &[Some("")]);
    let r = r.unwrap();
    assert_eq!((asked, r.messages.len()), (1, 5));
    // An empty answer is valid, and the summary is then the prefix alone. A total equal to the
    // limit is accepted: 40 keeps four.
    assert_eq!(r.messages[0], ChatLine::new("user", PREFIX));
    let exactly = SummaryRules { head_limit: 40, ..rules(100.0) };
    let mut text = String::new();
    summarize(&pairs(20), &exactly, &mut |t| {
        text = t.to_string();
        Some("s".into())
    })
    .unwrap();
    assert_eq!(text.matches("lorem ipsum dolor").count(), 4);
}

#[test]
fn only_the_word_assistant_is_an_answer() {
    // Roles are compared literally: `Assistant` and `tool` at the end get an answer, and the head
    // must end in `assistant`.
    for role in ["Assistant", "tool", "system", "user"] {
        let list = [ChatLine::new("assistant", "a"), ChatLine::new(role, "b")];
        let r = summarize(&list, &rules(10.0), &mut |_| None).unwrap();
        assert_eq!((r.messages.len(), r.input_changed), (3, true), "{role}");
    }
    let mut list = pairs(20);
    list.iter_mut().filter(|m| m.role == "assistant").for_each(|m| m.role = "Assistant".into());
    let (r, asked) = run(&list, &rules(100.0), PLAIN, 0);
    // Without a boundary, all messages are summarised into one. The transcript still names the
    // role.
    assert_eq!((r.unwrap().messages.len(), asked), (2, vec![1_010]));
}

#[test]
fn limits_of_nothing() {
    // With a limit of zero, an empty list is within the limit and one token exceeds it. Half of
    // zero leaves no tail.
    assert_eq!(answered(&[], &rules(0.0), &[]).0.unwrap().messages, []);
    let (r, asked) = answered(&pairs(6), &rules(0.0), &[Some("s"), Some("t")]);
    // The head contains all six, below 3,584. A tail of 0 tokens and a summary are not below 0, so
    // a second pass runs over a single message.
    let r = r.unwrap();
    assert_eq!(
        (asked, r.depth, r.messages[0].clone()),
        (2, 1, ChatLine::new("user", format!("{PREFIX}t")))
    );
    // An unknown or zero input limit counts as 4,096, less 512.
    assert_eq!(
        [head_limit(None, 1.0), head_limit(Some(0), 1.0), head_limit(Some(1_000), 1.0)],
        [3_584, 3_584, 488]
    );
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
        let (r, asked) = run(&pairs(n), &rules(max), PLAIN, pad);
        let r = r.unwrap();
        prop_assert!(asked.len() <= 2);
        let tail: Vec<_> = r.messages.iter().filter(|m| pairs(n).contains(m)).cloned().collect();
        prop_assert!(pairs(n).ends_with(&tail));
    }
}
