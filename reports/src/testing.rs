//! Sample results for tests: twelve strategies on a growing session, with every kind of failure.

use std::collections::{BTreeMap, HashMap};

use crate::error::ReportError;
use crate::formats;
use crate::plots::Hues;
use crate::record::{
    BlockText, BreakEven, CompactionRecord, FactLife, FactMove, FactPlace, FactRecord,
    IntegrityFailure, Portion, RESULTS_VERSION, RequestRecord, Results, Rule, RunRecord,
    ScenarioInfo, Status, StrategyInfo, Summary, TriggerRecord,
};
use crate::stored::{Artifact, OutputFolder, StoredResults};
use ctxbench_core::strategy::Standing;
use ctxbench_core::{CompactionKind, Phase};
use ctxbench_session::fact::Match;

/// Labels of the sample, including a long and a malicious one.
pub(crate) const LABELS: [&str; 12] = [
    "aider",
    "anthropic-sdk",
    "claude-code",
    "codex",
    "codex:auto_compact_limit=90000",
    "keep-nothing",
    "none",
    "opencode",
    "opencode:prune_protect=40000,prune_minimum=20000",
    "openoxide",
    "reference",
    "x<&\"y",
];

const STEPS: u64 = 120;
const WINDOW: u64 = 200_000;

pub(crate) fn results() -> Results {
    let assumptions = BTreeMap::from([
        ("latency".to_string(), "ttft 0.9 s + 0.19 ms per uncached token".to_string()),
        ("summariser".to_string(), "extractive".to_string()),
        ("re-reads".to_string(), "once per loss".to_string()),
    ]);
    let runs: Vec<RunRecord> =
        LABELS.iter().zip(0..).map(|(label, i)| run("login-bug", label, i)).collect();
    Results { generator: "ctxbench 0.1.0".into(), assumptions, ..of(runs) }
}

/// Results of `n` recordings, s01 and so on, with every label.
pub(crate) fn recordings(n: usize) -> Results {
    let mut all = results();
    let one = std::mem::take(&mut all.runs);
    for i in 1..=n {
        all.runs.extend(one.iter().cloned().map(|mut r| {
            (r.scenario.id, r.scenario.recorded) = (format!("s{i:02}"), true);
            r
        }));
    }
    all
}

/// The sample with one fact that the first compaction of a run removed.
pub(crate) fn forgetful() -> Results {
    let mut results = results();
    for r in results.runs.iter_mut().filter(|r| !r.compactions.is_empty()) {
        (r.facts[0].place, r.facts[0].found) = (FactPlace::Nowhere, Match::Absent);
        r.lives = vec![FactLife {
            fact: "token-ttl".into(),
            arises: "c1".into(),
            first_shown: Some(1),
            tokens: vec!["900 s".into()],
            text: "the token lives 900 s".into(),
            moves: vec![FactMove {
                compaction: 0,
                from: FactPlace::Verbatim,
                to: FactPlace::Nowhere,
                before: "the token lives 900 s".into(),
                after: "tokens expire".into(),
            }],
        }];
    }
    results
}

pub(crate) fn labelled<'a>(
    results: &'a mut Results,
    label: &'a str,
) -> impl Iterator<Item = &'a mut RunRecord> {
    results.runs.iter_mut().filter(move |r| r.strategy.label == label)
}

pub(crate) fn of(runs: impl Into<Vec<RunRecord>>) -> Results {
    Results { version: RESULTS_VERSION, runs: runs.into(), ..Results::default() }
}

/// A finished run without a broken rule and with these figures; all but the reference compacted once.
pub(crate) fn scored(scenario: &str, label: &str, cost_usd: f64, kept: f64) -> RunRecord {
    let mut r = run(scenario, label, 1);
    (r.status, r.error) = (Status::Completed, None);
    r.summary.compactions = u64::from(label != "reference");
    (r.summary.cost_usd, r.summary.recall_pct) = (cost_usd, Some(kept));
    r
}

/// A scored run of Codex with these settings given.
pub(crate) fn with_settings(
    scenario: &str,
    given: &[(&str, &str)],
    cost: f64,
    kept: f64,
) -> RunRecord {
    let mut r = scored(scenario, "codex", cost, kept);
    r.strategy.given = given.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let text: Vec<String> = given.iter().map(|(k, v)| format!("{k}={v}")).collect();
    if !text.is_empty() {
        r.strategy.label = format!("codex:{}", text.join(","));
    }
    r
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

/// Files of a format, in the order of their creation.
pub(crate) fn files(format: &str, results: &Results) -> Result<Vec<Artifact>, ReportError> {
    let dir = tempfile::tempdir()?;
    let mut out = OutputFolder::new(dir.path(), false);
    let stored = StoredResults::new(results, &results.runs)?;
    formats::format(format)?.write(&stored, &Hues::default(), &mut out)?;
    let read = |file: String| {
        Ok(Artifact { text: std::fs::read_to_string(dir.path().join(&file))?, file })
    };
    out.names.into_iter().map(read).collect()
}

pub(crate) fn csv_text(name: &str, results: &Results) -> String {
    let all = files("csv", results).unwrap();
    all.into_iter().find(|f| f.file == name).expect("a file of that name").text
}

/// Rows of one CSV file, each by column.
pub(crate) fn csv_rows(name: &str, results: &Results) -> Vec<HashMap<String, String>> {
    let text = csv_text(name, results);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

/// One run of the sample; `seed` shifts its numbers.
pub(crate) fn run(scenario: &str, label: &str, seed: u64) -> RunRecord {
    let name = label.split(':').next().unwrap_or(label);
    let limit = match name {
        "reference" | "none" => u64::MAX,
        "keep-nothing" => 9_000,
        _ => 70_000 + seed * 9_000,
    };
    let mut r = RunRecord {
        scenario: ScenarioInfo {
            id: scenario.into(),
            title: "Users are logged out at random".into(),
            scale: 0.5,
            ..ScenarioInfo::default()
        },
        strategy: StrategyInfo {
            label: label.into(),
            name: name.into(),
            standing: match name {
                "reference" => Standing::Hypothetical,
                "none" | "keep-nothing" => Standing::Control,
                _ => Standing::Contender,
            },
            ..StrategyInfo::default()
        },
        model: "claude-sonnet-4-6".into(),
        window: WINDOW,
        ..RunRecord::default()
    };
    replay(&mut r, limit, seed);
    score(&mut r, seed);
    if label == "x<&\"y" {
        r.integrity.push(IntegrityFailure {
            request: 12,
            rule: Rule::OrphanedResult,
            detail: "call <a&b> has no result".into(),
        });
        r.summary.integrity_failures = 1;
    }
    if r.compactions.is_empty() && r.strategy.standing != Standing::Hypothetical {
        r.note = Some("never triggered".into());
    }
    r
}

fn replay(r: &mut RunRecord, limit: u64, seed: u64) {
    let mut context = 12_000;
    let mut previous = 0;
    for step in 0..STEPS {
        if context > limit {
            compact(r, &mut context, limit, step, seed);
            previous = 0;
        }
        if context > WINDOW && r.strategy.standing != Standing::Hypothetical {
            r.status = Status::Overflow;
            r.error = Some("prompt is too long: 200900 tokens > 200000".into());
            break;
        }
        r.requests.push(RequestRecord {
            seq: r.requests.len() as u64,
            model: r.model.as_str().into(),
            step,
            input_tokens: context,
            cache_read: previous,
            cache_write: (context - previous) / 2,
            output_tokens: 300,
            context_tokens: context,
            cost_usd: context as f64 * 3e-6 - previous as f64 * 2.7e-6,
            at_ms: step * 9_000,
            latency_ms: 2_000,
            common_prefix_tokens: previous,
            ..RequestRecord::default()
        });
        previous = context;
        context += 1_500 + (step * 7919 + seed * 31) % 900;
        r.summary.steps_completed += 1;
    }
}

fn compact(r: &mut RunRecord, context: &mut u64, limit: u64, step: u64, seed: u64) {
    let before = *context;
    *context = 8_000 + limit / 6 + seed * 300;
    let before_request = r.requests.len() as u64;
    let portion = |kind: &str, tokens, tool: Option<&str>, text| {
        let texts = vec![BlockText { tool: tool.map(Into::into), tokens, text }];
        vec![Portion { kind: kind.into(), blocks: 1, tokens, texts }]
    };
    let summary = format!("Until step {step}: the login was mended.");
    r.compactions.push(CompactionRecord {
        seq: r.compactions.len() as u64,
        kind: [CompactionKind::Summarise, CompactionKind::Clear][seed as usize % 2],
        mechanism: "summary".into(),
        phase: Phase::MidTurn,
        before_request,
        at_ms: step * 9_000,
        before_tokens: before,
        after_tokens: Some(*context),
        invalidated_tokens: *context,
        summary_tokens: 1_200,
        blocked_ms: Some(14_000 + seed * 900),
        cost_usd: Some(0.02),
        break_even_calls: Some(BreakEven::Calls(4.5)),
        went: portion("output", before - *context, Some("bash"), format!("step {step}")),
        came: portion("summary", 1_200, None, summary),
        ..CompactionRecord::default()
    });
    r.triggers.push(TriggerRecord {
        before_request,
        believed: before - 200,
        billed: before,
        limit,
        check: "auto".into(),
    });
}

fn score(r: &mut RunRecord, seed: u64) {
    let compactions = r.compactions.len() as u64;
    r.facts.push(FactRecord {
        fact: "token-ttl".into(),
        need: "u9".into(),
        gap: Some(7),
        counts: true,
        exposed: Some(false),
        request: Some(r.requests.len() as u64 - 1),
        found: Match::Verbatim,
        place: FactPlace::Summary,
        compactions_before: compactions,
        ..FactRecord::default()
    });
    let sum = |f: fn(&RequestRecord) -> u64| r.requests.iter().map(f).sum::<u64>();
    let (input, read) = (sum(|q| q.input_tokens), sum(|q| q.cache_read));
    let cost = r.requests.iter().map(|q| q.cost_usd).sum::<f64>() + compactions as f64 * 0.02;
    let kept = match r.strategy.name.as_str() {
        "reference" | "none" => 100.0,
        "keep-nothing" => 0.0,
        _ => 100.0 - (seed * 17 % 60) as f64 - 3.3,
    };
    let done = r.status == Status::Completed;
    r.summary = Summary {
        requests: r.requests.len() as u64,
        compactions,
        summary_calls: compactions,
        input_tokens: input,
        cache_read_tokens: read,
        cache_write_tokens: sum(|q| q.cache_write),
        output_tokens: sum(|q| q.output_tokens),
        peak_context_tokens: r.requests.iter().map(|q| q.context_tokens).max().unwrap_or(0),
        saved_pct: done.then_some(100.0 - input as f64 / 160_000.0),
        cost_usd: cost,
        cost_saved_pct: done.then_some(100.0 - cost * 12.0),
        prefix_stability: Some(1.0 - compactions as f64 * 0.006),
        cache_read_ratio: Some(read as f64 / input as f64),
        blocked_ms: r.compactions.iter().filter_map(|c| c.blocked_ms).sum(),
        total_ms: r.requests.last().map_or(0, |q| q.at_ms),
        recall_pct: Some(kept),
        at_risk: Some(20),
        recall_at_risk_pct: Some(kept),
        steps_completed: r.summary.steps_completed,
        steps_total: STEPS,
        ..Summary::default()
    };
}
