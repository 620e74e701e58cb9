//! Effect of the instructions of a manual compaction (`/compact focus on …`): compares runs with
//! and without them.

use std::collections::{HashMap, HashSet};

use ctxbench_reports::record::{FactRecord, RunRecord, Steering};
use ctxbench_scenarios::Scenario;
use ctxbench_session::fact::{Fact, FactKind, Match};
use ctxbench_session::{Entry, Session};

/// Returns true if the instructions of a manual compaction ask for a fact that is needed later.
pub fn steers(scenario: &Scenario) -> bool {
    pairs(&scenario.session).values().any(|asked| *asked)
}

/// Removes the instructions from all compactions of a scenario.
pub fn silenced(scenario: &Scenario) -> Scenario {
    let mut out = scenario.clone();
    for e in &mut out.session.entries {
        match e {
            Entry::Compact { instructions, .. } => *instructions = None,
            Entry::RecordedCompaction(c) => c.instructions = None,
            _ => {}
        }
    }
    out
}

/// Compares both runs. Returns `None` if the instructions ask for no fact.
pub fn compare(session: &Session, with: &RunRecord, without: &RunRecord) -> Option<Steering> {
    let pairs = pairs(session);
    let share = |run: &RunRecord, asked: bool| -> (u64, Option<f64>) {
        let of = |f: &&FactRecord| pairs.get(&(f.fact.as_str(), f.need.as_str())) == Some(&asked);
        let all: Vec<&FactRecord> = run.facts.iter().filter(of).collect();
        let kept = all.iter().filter(|f| f.found != Match::Absent).count();
        (all.len() as u64, (!all.is_empty()).then(|| 100.0 * kept as f64 / all.len() as f64))
    };
    let (asked, asked_with) = share(with, true);
    let (others, others_with_pct) = share(with, false);
    Some(Steering {
        asked,
        asked_with_pct: asked_with?,
        asked_without_pct: share(without, true).1?,
        others,
        others_with_pct,
        others_without_pct: share(without, false).1,
    })
}

/// Returns the (fact, need) pairs with an instructed compaction between them. The value is true if
/// the last instructions before the need ask for the fact.
fn pairs(session: &Session) -> HashMap<(&str, &str), bool> {
    let at: HashMap<&str, usize> =
        session.entries.iter().enumerate().filter_map(|(i, e)| Some((e.key()?, i))).collect();
    let words: Vec<(usize, &str)> = session
        .entries
        .iter()
        .enumerate()
        .filter_map(|(i, e)| Some((i, instructions(e)?)))
        .collect();
    let mut out = HashMap::new();
    for f in &session.facts {
        for need in &f.needs {
            let (Some(from), Some(to)) = (at.get(f.arises.as_str()), at.get(need.as_str())) else {
                continue;
            };
            if let Some((_, text)) = words.iter().rfind(|(i, _)| from < i && i < to) {
                out.insert((f.id.as_str(), need.as_str()), asks_for(text, f));
            }
        }
    }
    out
}

fn instructions(e: &Entry) -> Option<&str> {
    e.compact_command()?.0.filter(|t| !t.trim().is_empty())
}

/// Returns true if the instructions name the fact's kind, in singular or plural, or a path that one
/// of its literals contains.
fn asks_for(text: &str, fact: &Fact) -> bool {
    let low = text.to_lowercase();
    let words: HashSet<&str> = low
        .split(|c: char| !(c.is_alphanumeric() || "_-./".contains(c)))
        .map(|w| w.trim_matches('.'))
        .collect();
    let path = |w: &&&str| w.len() >= 4 && w.contains(['/', '.']);
    kind_words(fact.kind).iter().any(|w| words.contains(w))
        || words
            .iter()
            .filter(path)
            .any(|w| fact.tokens.iter().any(|t| t.to_lowercase().contains(*w)))
}

fn kind_words(kind: FactKind) -> &'static [&'static str] {
    match kind {
        FactKind::Goal => &["goal", "goals"],
        FactKind::Constraint => {
            &["constraint", "constraints", "rule", "rules", "prohibition", "prohibitions"]
        }
        FactKind::Artifact => &["artifact", "artifacts", "file", "files", "path", "paths"],
        FactKind::Decision => &["decision", "decisions"],
        FactKind::Error => &["error", "errors"],
        FactKind::Value => &["value", "values", "number", "numbers"],
        FactKind::Todo => &["todo", "todos"],
        FactKind::Superseded => &["superseded"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_session::{AssistantEntry, UserEntry};
    use serde_json::json;

    fn user(id: &str) -> Entry {
        Entry::User(UserEntry { id: id.into(), text: Some("x".into()), ..Default::default() })
    }

    fn compact(words: Option<&str>) -> Entry {
        Entry::Compact { instructions: words.map(str::to_string), at: None }
    }

    fn session(words: Option<&str>) -> Session {
        let reply = Entry::Assistant(AssistantEntry {
            id: "a1".into(),
            text: Some("x".into()),
            ..Default::default()
        });
        let fact = |id: &str, kind: &str, token: &str, needs: &[&str]| -> Fact {
            serde_json::from_value(
                json!({"id": id, "kind": kind, "tokens": [token], "arises": "u1", "needs": needs}),
            )
            .unwrap()
        };
        Session {
            entries: vec![user("u1"), reply, user("u2"), compact(words), user("u3")],
            facts: vec![
                fact("e", "error", "E1", &["u2", "u3"]),
                fact("v", "value", "8443", &["u3"]),
                fact("p", "artifact", "src/auth/cache.ts", &["u3"]),
            ],
            ..Session::default()
        }
    }

    fn run(found: &[(&str, &str, Match)]) -> RunRecord {
        let record = |(fact, need, found): &(&str, &str, Match)| FactRecord {
            fact: (*fact).into(),
            need: (*need).into(),
            request: Some(1),
            found: *found,
            ..FactRecord::default()
        };
        RunRecord { facts: found.iter().map(record).collect(), ..RunRecord::default() }
    }

    #[test]
    fn by_hand() {
        use Match::{Absent, Verbatim};
        let s = session(Some("Focus on the errors and on src/auth/"));
        let with = run(&[
            ("e", "u2", Verbatim),
            ("e", "u3", Verbatim),
            ("v", "u3", Absent),
            ("p", "u3", Verbatim),
        ]);
        let without = run(&[
            ("e", "u2", Verbatim),
            ("e", "u3", Absent),
            ("v", "u3", Verbatim),
            ("p", "u3", Verbatim),
        ]);
        // The instructions ask for e and p at u3. The need u2 lies before the compaction and is not
        // counted. v is not asked for.
        let want = Steering {
            asked: 2,
            asked_with_pct: 100.0,
            asked_without_pct: 50.0,
            others: 1,
            others_with_pct: Some(0.0),
            others_without_pct: Some(100.0),
        };
        assert_eq!(compare(&s, &with, &without), Some(want));
    }

    #[test]
    fn words_that_ask_for_nothing_are_no_steering() {
        for words in [None, Some(" "), Some("be brief"), Some("Focus on the valued errand at E")] {
            let scenario = Scenario { session: session(words), ..Scenario::default() };
            assert!(!steers(&scenario), "{words:?}");
        }
        let steered = Scenario {
            session: session(Some("which decision, value or todo")),
            ..Scenario::default()
        };
        assert!(steers(&steered) && !steers(&silenced(&steered)));
    }
}
