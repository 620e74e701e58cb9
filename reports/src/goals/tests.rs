use super::*;
use crate::record::{Comparison, IntegrityFailure, Rule};
use crate::{csv, markdown, sample, table};

const TIME: &str = "[[goal]]\nname = \"compaction time\"\nmetric = \"compaction_p95_ms\"\nis = \"<\"\n\
    bound = 5\nunit = \"s\"\ntag = \"default\"\nsays = \"Less than 5 s.\"\nlink = \"a.md#1\"\n";

fn with(change: &str, to: &str) -> String {
    assert!(TIME.contains(change), "{change}");
    read("g.toml", &TIME.replace(change, to)).unwrap_err().to_string()
}

/// Two products: one compacts in 4.999 s at the 95th percentile, one in exactly 5 s; `none` never.
fn results() -> Results {
    let mut results = Results { goals: read("g.toml", TIME).unwrap(), ..sample::results() };
    results.runs.retain(|r| ["codex", "aider", "none", "reference"].contains(&&*r.strategy.name));
    results.runs.retain(|r| !r.strategy.label.contains(':'));
    for run in &mut results.runs {
        run.scenario.tags = vec!["default".into()];
        run.summary.compaction_p95_ms = match run.strategy.name.as_str() {
            "codex" => Some(4_999),
            "aider" => Some(5_000),
            _ => None,
        };
    }
    results
}

fn verdicts(results: &Results) -> Vec<(&str, Verdict)> {
    let one = |r| judged(r, &results.goals).first().map(|j| j.verdict);
    results.runs.iter().filter_map(|r| Some((r.strategy.name.as_str(), one(r)?))).collect()
}

#[test]
fn a_bound_in_seconds_is_held_against_milliseconds_and_missing_figures_never_pass() {
    let results = results();
    assert_eq!(results.goals[0].bound, 5_000.0);
    assert_eq!(
        verdicts(&results),
        [
            ("aider", Verdict::Fail),
            ("codex", Verdict::Pass),
            ("none", Verdict::Na),
            ("reference", Verdict::Na)
        ]
    );
    let standing = standing(&results);
    assert_eq!((standing.passed, standing.failed.len()), (1, 1));
    assert_eq!(
        standing.failed[0],
        "login-bug × aider: goal “compaction time” is missed: compaction_p95_ms < 5 s wanted, \
         5.0 s measured"
    );
}

#[test]
fn each_comparison_by_hand() {
    use Comparison::{Above, AtLeast, AtMost, Below};
    let at = |is: Comparison| [1.0, 2.0, 3.0].map(|x| is.holds(x, 2.0));
    assert_eq!(at(Below), [true, false, false]);
    assert_eq!(at(AtMost), [true, true, false]);
    assert_eq!(at(AtLeast), [false, true, true]);
    assert_eq!(at(Above), [false, false, true]);
}

#[test]
fn a_run_that_ended_early_or_broke_a_rule_passes_nothing() {
    let mut results = results();
    let codex = results.runs.iter().position(|r| r.strategy.name == "codex").unwrap();
    results.runs[codex].status = Status::Overflow;
    let cell = |r: &Results| judged(&r.runs[codex], &r.goals)[0].text();
    assert_eq!(cell(&results), "fail full");
    results.runs[codex].status = Status::Completed;
    assert_eq!(cell(&results), "pass 5.0");
    results.runs[codex].integrity.push(IntegrityFailure {
        request: 1,
        rule: Rule::OrphanedResult,
        detail: "call c1".into(),
    });
    assert_eq!(cell(&results), "fail broken");
    results.runs[codex].status = Status::Error;
    assert_eq!(cell(&results), "n/a");
}

#[test]
fn a_product_that_died_without_a_figure_is_no_success() {
    let mut results = results();
    let codex = results.runs.iter().position(|r| r.strategy.name == "codex").unwrap();
    results.runs[codex].summary.compaction_p95_ms = None;
    assert_eq!(standing(&results).failed.len(), 1, "aider alone, which is too slow");
    results.runs[codex].status = Status::Overflow;
    let failed = standing(&results).failed;
    assert!(
        failed.iter().any(|l| l
            == "login-bug × codex: goal “compaction time”: no figure, since the run ended as full"),
        "{failed:?}"
    );
    results.runs[codex].status = Status::NotApplicable;
    assert_eq!(standing(&results).failed.len(), 1);
}

#[test]
fn only_sessions_that_a_goal_is_about_are_judged_and_the_rest_is_told() {
    let mut results = results();
    results.runs.iter_mut().for_each(|r| r.scenario.tags.clear());
    assert!(verdicts(&results).is_empty() && sheets(&results).is_empty());
    assert_eq!(standing(&results).without_session, ["compaction time"]);
    results.goals[0].about = About::Scenario("login-bug".into());
    assert_eq!(verdicts(&results).len(), 4);
    results.goals[0].about = About::Scenario("login".into());
    assert!(verdicts(&results).is_empty());
    results.goals[0].about = About::Every;
    assert_eq!(verdicts(&results).len(), 4);
}

#[test]
fn every_form_shows_the_same_verdicts() {
    let results = results();
    let text = table::table(&results, &table::TableOptions::default());
    let line = |name: &str| {
        let goals = text.split("Goals on sessions tagged default").nth(1).unwrap();
        goals.lines().find(|l| l.trim_start().starts_with(name)).unwrap().to_string()
    };
    assert!(line("codex").contains("pass 5.0") && line("codex").contains("1/1"));
    assert!(line("aider").contains("fail 5.0") && line("aider").contains("0/1"));
    assert!(line("none").contains("n/a") && line("none").contains("0/0"));
    let md = markdown::FORMAT.render(&results, &Default::default()).unwrap().remove(0).text;
    assert!(md.contains("| codex | pass 5.0 | 1/1 |") && md.contains("Less than 5 s"), "{md}");
    let rows = csv::of("goals.csv", &results);
    let codex = rows.lines().find(|l| l.contains(",codex,")).unwrap();
    assert!(
        codex.contains(
            "compaction time,tag default,compaction_p95_ms,ms,<,5000,4999,pass,n/a,Less than 5 s.,\
             a.md#1"
        ),
        "{codex}"
    );
    assert_eq!(rows.lines().count(), 5, "a head and a line for each of four rows");
}

#[test]
fn mistakes_in_a_file_are_told_with_line_and_nearest_name() {
    let error = with("compaction_p95_ms", "compaction_p95");
    let begin = "g.toml:3: no metric is called `compaction_p95`; did you mean compaction_p95_ms";
    assert!(error.starts_with(begin), "{error}");
    assert_eq!(with("\"s\"", "\"%\""), "g.toml:6: `compaction_p95_ms` is in ms or s, not in `%`");
    assert_eq!(
        with("tag = \"default\"", "tag = \"a\"\nscenario = \"b\""),
        "g.toml:1: a goal is about a `scenario` or a `tag`; leave one of them out"
    );
    assert_eq!(with("bound = 5", "bound = nan"), "g.toml:5: `bound` must be a finite number");
    assert_eq!(with("link =", "lnk ="), "g.toml:9: unknown key `lnk`; did you mean link?");
    assert_eq!(
        read("g.toml", &format!("{TIME}{TIME}")).unwrap_err().to_string(),
        "g.toml:10: two goals are called `compaction time`; rename one"
    );
    assert_eq!(
        read("g.toml", "goal = []").unwrap_err().to_string(),
        "g.toml:1: there is no [[goal]] in it"
    );
}

#[test]
fn goals_are_kept_with_the_results() {
    let results = results();
    let text = crate::results_text(&results).unwrap();
    let read = crate::parse_results(&text, std::path::Path::new("results.json")).unwrap();
    assert_eq!(read.goals, results.goals);
}

#[test]
fn every_ratio_may_be_given_in_per_cent() {
    for column in ["cache_read_ratio", "prefix_stability", "reusable"] {
        let text = TIME.replace("compaction_p95_ms", column).replace("\"s\"", "\"%\"");
        let goals = read("g.toml", &text.replace("bound = 5", "bound = 90")).unwrap();
        assert!((goals[0].bound - 0.9).abs() < 1e-12, "{column}");
    }
}

#[test]
fn the_goals_of_the_documents_are_read_and_say_where_they_come_from() {
    let goals = documents().unwrap();
    assert!(goals.len() >= 12);
    for g in &goals {
        assert!(g.link.starts_with("docs/sources/") && g.link.contains('#'), "{}", g.name);
    }
    let time = goals.iter().find(|g| g.name == "compaction time").unwrap();
    assert_eq!((time.bound, time.is), (5_000.0, Comparison::Below));
}

#[test]
fn what_compactions_took_out_by_hand() {
    let mut run = sample::run("s", "codex", 1);
    run.compactions.truncate(1);
    run.compactions[0].before_tokens = 92_000;
    run.compactions[0].after_tokens = Some(50_000);
    let freed = |r: &RunRecord| metrics::find("freed_pct").unwrap().value(r);
    // 42 of 92.
    assert!((freed(&run).unwrap() - 45.652_173_9).abs() < 1e-6);
    run.compactions.push(run.compactions[0].clone());
    run.compactions[1].after_tokens = Some(134_000);
    // What the second added, the first had taken.
    assert_eq!(freed(&run), Some(0.0));
    run.compactions.clear();
    assert_eq!(freed(&run), None);
}
