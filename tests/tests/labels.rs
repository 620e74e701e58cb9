//! Comparison of the facts found in recordings with manually labelled needs. `tests/data/labels`
//! describes the labels.

use std::collections::{BTreeMap, HashMap};

use ctxbench_scenarios::{Loaded, Scenario, autofacts};
use ctxbench_session::{Entry, Session};
use serde_json::Value;

use crate::common::{json_lines, recordings, replayed};

/// Maximum number of replies between a label and a matching pair.
const WITHIN: usize = 2;

/// Minimum length in characters of a literal that matches by containing or being contained.
const PART: usize = 4;

/// Subagent and index of the reply. A message has the index of the reply before it.
type Position = (Option<String>, usize);

/// A fact that was found, at one of its needs.
struct Pair {
    literals: Vec<String>,
    origin: Option<Position>,
    need: Position,
}

/// Number of hits and number of cases.
#[derive(Clone, Copy, Default)]
struct Share(usize, usize);

impl Share {
    fn count(&mut self, hit: bool) {
        self.0 += usize::from(hit);
        self.1 += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.0 as f64 / self.1.max(1) as f64
    }
}

/// Asserted shares, and the recall per kind of label.
#[derive(Default)]
struct Score {
    precision: Share,
    window_precision: Share,
    kept: Share,
    recall: Share,
    without_literal: Share,
    by_kind: BTreeMap<String, Share>,
}

fn session(name: &str) -> Session {
    let mut session = recordings::session(name);
    autofacts::add(&mut session);
    session
}

fn pairs(session: &Session) -> Vec<Pair> {
    let mut replies: HashMap<Option<&str>, usize> = HashMap::new();
    let mut places: HashMap<String, Position> = HashMap::new();
    for entry in &session.entries {
        let count = replies.entry(entry.agent()).or_default();
        *count += usize::from(matches!(entry, Entry::Assistant(_)));
        let here = (entry.agent().map(str::to_string), *count);
        let key = match entry {
            Entry::Tool(_) => None,
            _ => entry.key(),
        };
        if let Entry::Assistant(m) = entry {
            for call in m.all_calls() {
                places.insert(call.id.to_string(), here.clone());
            }
        }
        if let Some(key) = key {
            places.insert(key.to_string(), here);
        }
    }
    let pair = |f: &ctxbench_session::fact::Fact, need: &String| Pair {
        literals: f.tokens.clone(),
        origin: places.get(&f.arises).cloned(),
        need: places[need].clone(),
    };
    session.facts.iter().flat_map(|f| f.needs.iter().map(move |n| pair(f, n))).collect()
}

fn literals(label: &Value) -> Vec<&str> {
    label["literals"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

fn position(label: &Value) -> Position {
    (label["agent"].as_str().map(str::to_string), label["reply"].as_u64().unwrap() as usize)
}

/// Returns whether a pair is the one of a label in part A. Its literals omit the project folder.
fn is_same(pair: &Pair, label: &Value) -> bool {
    let same = |l: &&str| pair.literals.iter().any(|t| t == l || t.ends_with(&format!("/{l}")));
    literals(label).iter().any(same)
}

/// Returns whether a pair with a near enough need matches a label in part B.
fn matches(pair: &Pair, label: &Value) -> bool {
    let labelled = literals(label);
    if !labelled.is_empty() || !pair.literals.is_empty() {
        let long = |a: &str, b: &str| a.chars().count().min(b.chars().count()) >= PART;
        let alike = |a: &str, b: &str| a == b || long(a, b) && (a.contains(b) || b.contains(a));
        return pair.literals.iter().any(|a| labelled.iter().any(|b| alike(a, b)));
    }
    let agent = label["origin"][0].as_str();
    let reply = label["origin"][1].as_i64().unwrap();
    pair.origin.as_ref().is_some_and(|(of, at)| {
        of.as_deref() == agent && (*at as i64 - reply).unsigned_abs() as usize <= WITHIN
    })
}

fn near(a: &Position, b: &Position) -> bool {
    a.0 == b.0 && a.1.abs_diff(b.1) <= WITHIN
}

fn score(pairs: &[Pair], labels: &[&Value], score: &mut Score) {
    // Windows of part B are labelled in full. This maps each position to its needs.
    let mut windows: HashMap<Position, Vec<&Value>> = HashMap::new();
    for label in labels {
        if let Some(window) = label["window"].as_u64() {
            windows.entry((None, window as usize)).or_default();
            continue;
        }
        let at = position(label);
        if label["part"] == "A" {
            let found = pairs.iter().any(|p| p.need == at && is_same(p, label));
            let needed = label["label"] == "needed";
            if found {
                score.precision.count(needed);
            }
            if needed {
                score.kept.count(found);
            }
            continue;
        }
        if at.0.is_none() && label["exact"] == true {
            windows.entry(at.clone()).or_default().push(label);
        }
        let hit = pairs.iter().any(|p| near(&p.need, &at) && matches(p, label));
        score.recall.count(hit);
        if literals(label).is_empty() {
            score.without_literal.count(hit);
        }
        let kind = label["kind"].as_str().unwrap();
        score.by_kind.entry(kind.to_string()).or_default().count(hit);
    }
    for (window, needs) in windows {
        for pair in pairs.iter().filter(|p| p.need == window) {
            score.window_precision.count(needs.iter().any(|label| matches(pair, label)));
        }
    }
}

/// The bounds are minimums; the figures are printed.
#[test]
fn found_needs_match_labels() {
    let text =
        std::fs::read_to_string(recordings::folder().join("../labels/labels.jsonl")).unwrap();
    let labels = json_lines(&text);
    let mut all = Score::default();
    for name in ["codemie-rollout", "codemie-session", "spotter-4d5611e5", "spotter-8463c716"] {
        let own: Vec<&Value> = labels.iter().filter(|l| l["session"] == name).collect();
        assert!(!own.is_empty());
        score(&pairs(&session(name)), &own, &mut all);
    }
    let Score { precision, window_precision, kept, recall, without_literal, by_kind } = all;
    assert_eq!((kept.1, recall.1, without_literal.1), (77, 99, 16), "labels are missing");
    let bounds = [
        ("precision", precision, 94.0),
        ("window-precision", window_precision, 72.0),
        ("kept", kept, 94.0),
        ("recall", recall, 81.0),
        ("recall-without-literal", without_literal, 50.0),
    ];
    for (label, share, _) in bounds {
        println!("{label}: {}/{} = {:.1} %", share.0, share.1, share.percent());
    }
    for (kind, share) in by_kind {
        println!("recall of {kind}: {}/{} = {:.1} %", share.0, share.1, share.percent());
    }
    for (label, share, least) in bounds {
        assert!(share.percent() >= least, "{label}: {:.1} % is below {least} %", share.percent());
    }
}

/// If nothing was removed from the history, every need must be met. Otherwise the figures would
/// measure the finder and not the strategy.
#[test]
fn without_compaction_every_need_is_met() {
    for name in ["codemie-rollout", "codemie-session"] {
        let mut session = recordings::session(name);
        autofacts::add(&mut session);
        let scenario = Scenario::of_session(Loaded { session, ..Loaded::default() });
        let run = replayed::run(&scenario, "reference");
        assert_eq!(run.summary.recall_pct, Some(100.0), "{name}");
    }
}
