use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

use ctxbench_core::block::is_fixed;
use ctxbench_core::context::orphans;
use ctxbench_core::model::find;

use super::*;
use crate::testing::*;

/// A session: a request of the user, and for each result a reply with a call that the user follows
/// up every `turn` replies.
fn session(results: &[String], turn: usize) -> Script {
    let (mut actions, mut replies) =
        (vec![user("u0", "Please find the port in src/main.rs.")], vec![]);
    for i in 0..results.len() {
        if i > 0 && i % turn == 0 {
            replies.push(text_answer(&format!("Turn {i} is done.")));
            actions.push(user(&format!("u{i}"), &format!("Now look at number {i}.")));
        }
        let arguments = format!(r#"{{"file_path": "src/file_{i}.rs"}}"#);
        replies.push(calls(&format!("I read file_{i}."), &format!("c{i}"), "Read", &arguments));
    }
    replies.push(text_answer("Everything is done."));
    Script::new(actions, replies).outputs(results.to_vec())
}

/// A numbered result of `lines` lines, with a line that repeats in all results.
fn result(seed: usize, lines: usize) -> String {
    let line =
        |n: usize| format!("{n:>4}→    let value_{seed}_{n} = compute(\"part {n}\", {seed});");
    let all = (1..=lines).map(line).chain(["     9→}".to_string()]);
    all.collect::<Vec<_>>().join("\n")
}

fn journal_of(r: &Request) -> Vec<&str> {
    r.blocks.iter().filter(|b| b.kind == BlockKind::Reminder).map(|b| &*b.text).collect()
}

#[test]
fn old_replies_become_exact_lines_without_numbers_and_none_twice() {
    let results: Vec<String> = (0..6).map(|i| result(i, 40)).collect();
    let p = play("generational:young=2,rent=0", session(&results, 99));
    let last = p.last();
    let text = journal_of(last).join("\n");
    assert!(text.contains("> Read file_path=src/file_0.rs\n"), "{text}");
    assert!(text.contains("\n    let value_0_7 = compute(\"part 7\", 0);\n"), "{text}");
    assert!(text.contains("\nI read file_0.\n"), "{text}");
    assert_eq!(text.lines().filter(|l| *l == "}").count(), 1, "{text}");
    let results = last.blocks.iter().filter(|b| b.kind == BlockKind::Output).count();
    assert!((2..=3).contains(&results), "the young, and one that frees too little: {results}");
    assert!(outline(last).iter().any(|b| b.starts_with("User:Please find the port")));
}

#[test]
fn it_collects_when_the_garbage_has_cost_as_much_as_collecting() {
    // The journal of results without new lines is small, so nearly everything old is garbage.
    let results: Vec<String> = (0..20).map(|_| result(0, 300)).collect();
    let collections = |rent: u32| {
        let p = play(&format!("generational:young=4,rent={rent}"), session(&results, 99));
        p.compactions().len()
    };
    let counts = [0, 1, 100].map(collections);
    assert!(counts.is_sorted_by(|a, b| a > b) && counts[2] == 0, "{counts:?}");
}

#[test]
fn it_collects_when_the_cache_is_cold() {
    let results: Vec<String> = (0..12).map(|_| result(0, 300)).collect();
    let script = |ms| {
        let mut script = session(&results, 6);
        script.actions.insert(1, Action::Idle { ms });
        script
    };
    let collections = |ms| play("generational:young=2,rent=1000", script(ms)).compactions().len();
    assert_eq!([collections(60_000), collections(600_000)], [0, 1]);
}

#[test]
fn a_journal_over_its_limit_is_cut_to_half_and_keeps_what_was_said_and_the_newest() {
    let mut results: Vec<String> = (0..30).map(|i| result(i, 60)).collect();
    results[0] += "\nconst LOST = 18;";
    let p = play("generational:young=2,rent=0,journal=6000", session(&results, 99));
    let text = journal_of(p.last()).join("\n");
    assert!(o200k(&text) <= 6_000 + 200, "{}", o200k(&text));
    assert!(text.contains("value_25_9 ") && !text.contains("const LOST"), "{text}");
    assert!(
        text.contains("\nI read file_0.\n") && text.contains("> Read file_path=src/file_0.rs\n"),
        "{text}"
    );
}

#[test]
fn a_refused_prompt_is_collected_with_smaller_limits() {
    let results: Vec<String> = (0..8).map(|i| result(i, 200)).collect();
    let mut script = session(&results, 99);
    script.replies.insert(7, too_long(210_000, 200_000));
    let p = play("generational:young=4,rent=1000", script);
    assert_eq!(p.compactions(), ["collect"]);
    assert!(p.failures().is_empty(), "{:?}", p.failures());
}

#[test]
fn a_result_as_large_as_the_window_is_cut_to_its_newest_lines() {
    let mut results: Vec<String> = (0..4).map(|i| result(i, 40)).collect();
    // About 35,000 tokens; the window has 32,000.
    results[2] = result(2, 1500);
    let p = play("generational", session(&results, 99).scaled(0.16));
    assert!(p.failures().is_empty(), "{:?}", p.failures());
    let text = journal_of(p.last()).join("\n");
    assert!(text.contains("value_2_1499 ") && !text.contains("value_2_1 "), "{text}");
}

#[test]
fn a_rewind_restores_what_was_collected_after_it() {
    let results: Vec<String> = (0..8).map(|i| result(i, 40)).collect();
    let script =
        session(&results, 4).then([back_to("u0"), user("v", "again")], [text_answer("ok")]);
    let p = play("generational:young=2,rent=0", script);
    let shown = outline(p.last());
    assert_eq!(shown.len(), 3, "base and two messages of the user: {shown:?}");
    assert!(shown[1].starts_with("User:Please find"), "{shown:?}");
}

/// Returns results by seed and number of lines.
fn results(sizes: &[(usize, usize)]) -> Vec<String> {
    sizes.iter().map(|(seed, lines)| result(*seed, *lines)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_request_is_valid_and_fits(
        sizes in vec((0..6_usize, 0..120_usize), 1..30),
        turn in 1..12_usize,
        young in 1..9_usize,
        journal in 500..20_000_u64,
        rent in 0..3_u64,
        scale in 0.1..1.0_f64,
    ) {
        let spec = format!("generational:young={young},journal={journal},rent={rent}");
        let script = || session(&results(&sizes), turn).scaled(scale);
        let (p, again) = (play(&spec, script()), play(&spec, script()));
        let window = (find("claude-sonnet-4-5").unwrap().window as f64 * scale) as u64;
        for (r, second) in p.requests.iter().zip(&again.requests) {
            prop_assert_eq!(outline(r), outline(second), "deterministic");
            let lost = orphans(&r.blocks);
            prop_assert!(lost.calls.is_empty() && lost.results.is_empty(), "{:?}", lost);
            prop_assert!(r.tokens() <= window, "{} > {window}", r.tokens());
            let sent = r.blocks.last().map(|b| b.message);
            let said = p.engine.history.messages().iter().rev().find(|m| {
                m.role == Role::User && !m.synthetic && Some(m.id) <= sent
            });
            let is_shown = |b: &Arc<Block>| Some(b.message) == said.map(|m| m.id);
            prop_assert!(r.blocks.iter().any(is_shown), "the last request is shown");
        }
        prop_assert_eq!(p.failures().len(), 0);
    }

    #[test]
    fn a_request_only_appends_unless_something_was_collected(
        sizes in vec((0..6_usize, 0..120_usize), 1..30),
        turn in 1..12_usize,
        journal in 500..40_000_u64,
    ) {
        let spec = format!("generational:young=3,journal={journal},rent=1");
        let p = play(&spec, session(&results(&sizes), turn));
        for pair in p.requests.windows(2) {
            let [a, b] = pair else { unreachable!() };
            let same = a.blocks.iter().zip(&b.blocks).take_while(|(x, y)| x.hash == y.hash).count();
            let written = |r: &Request| journal_of(r).iter().map(|t| t.to_string()).collect::<Vec<_>>();
            let (before, after) = (written(a), written(b));
            if before == after {
                prop_assert_eq!(same, a.blocks.len(), "nothing was collected");
            } else if after.starts_with(&before) {
                let is_old = |x: &&Arc<Block>| is_fixed(x) || x.kind == BlockKind::Reminder;
                let journal_end = a.blocks.iter().rposition(|x| is_old(&x)).map_or(0, |i| i + 1);
                prop_assert!(same >= journal_end, "appending keeps the journal");
            }
        }
    }
}
