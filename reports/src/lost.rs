//! Needs with a fact that was lost from the context, session by session, with an excerpt of its
//! source and the nearest line of a summary.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::error::ReportError;
use crate::explain::{self, Filter, RunName, filtered};
use crate::record::{FactLife, FactMove, FactPlace, FactRecord, Results, RunRecord};
use crate::{fmt, json};
use ctxbench_session::fact::FactKind;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostNeeds<'a> {
    #[serde(flatten)]
    pub run: RunName<'a>,
    /// Number of needs that ask for memory.
    pub needs: usize,
    /// Needs with a lost fact in the order of requests; those that the run did not reach come last.
    pub lost: Vec<LostNeed<'a>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostNeed<'a> {
    /// The row of `facts.csv`.
    #[serde(flatten)]
    pub pair: &'a FactRecord,
    /// Literals of the fact.
    pub tokens: &'a [String],
    /// Excerpt of the source of the fact; empty in results without texts.
    pub text: &'a str,
    /// Nearest line of a summary; empty if there is none.
    pub after: &'a str,
}

/// Losses of the selected runs, in the order of the results.
pub fn lost<'a>(
    results: &'a Results,
    filter: Filter<'_>,
) -> Result<Vec<LostNeeds<'a>>, ReportError> {
    Ok(filtered(results, filter)?.into_iter().map(of_run).collect())
}

pub(crate) fn of_run(run: &RunRecord) -> LostNeeds<'_> {
    let lives = run.lives_by_fact();
    let counted = || run.facts.iter().filter(|f| f.is_need());
    let mut lost: Vec<LostNeed<'_>> = counted()
        .filter(|f| f.place == FactPlace::Nowhere)
        .map(|pair| {
            let life = lives.get(&*pair.fact).copied();
            LostNeed {
                pair,
                tokens: life.map_or(&[], |l| &l.tokens),
                text: life.map_or("", |l| &l.text),
                after: life.and_then(|l| last_loss(l, pair)).map_or("", |m| &m.after),
            }
        })
        .collect();
    lost.sort_by_key(|l| (l.pair.request.unwrap_or(u64::MAX), &l.pair.fact));
    LostNeeds { run: RunName::from_run(run), needs: counted().count(), lost }
}

/// Last compaction before a need that removed the fact.
fn last_loss<'a>(life: &'a FactLife, pair: &FactRecord) -> Option<&'a FactMove> {
    let before =
        |m: &&FactMove| m.to == FactPlace::Nowhere && m.compaction < pair.compactions_before;
    life.moves.iter().rfind(before)
}

/// Formats the losses as text for people, a paragraph per fact.
pub fn to_text(all: &[LostNeeds<'_>]) -> String {
    let mut out = String::new();
    for run in all {
        if !out.is_empty() {
            out.push('\n');
        }
        // Writing to a string never fails.
        let _ = writeln!(out, "{}: {} of {} needs lost", run.run, run.lost.len(), run.needs);
        let mut needs: HashMap<&str, Vec<String>> = HashMap::new();
        for need in &run.lost {
            needs.entry(&need.pair.fact).or_default().push(need.description());
        }
        for need in &run.lost {
            let Some(needs) = needs.remove(&*need.pair.fact) else { continue };
            let needs = needs.join("; ");
            // Content is known by the call that fetched it, not by its lines.
            let is_content = need.pair.kind == FactKind::Content;
            let most = if is_content { 1 } else { explain::LISTED };
            let words = explain::quoted_list(need.tokens, most);
            let (fact, after) =
                (fmt::one_line(&need.pair.fact), if is_content { "" } else { need.after });
            let _ = writeln!(out, "  {fact} ({}) {words}, needed by {needs}", need.pair.kind);
            let words = [("said", need.text), ("nearest in a summary", after)];
            for (what, words) in words.into_iter().filter(|(_, words)| !words.is_empty()) {
                let _ = writeln!(out, "    {what}: “{}”", fmt::one_line(words));
            }
        }
    }
    out
}

/// Formats the lost facts as JSON.
pub fn to_json(all: &[LostNeeds<'_>]) -> String {
    json::pretty(&all)
}

impl LostNeed<'_> {
    /// Describes the need, without the fact.
    fn description(&self) -> String {
        let request = match self.pair.request {
            Some(n) => format!(" in request {n}"),
            None => ", which the run did not reach".into(),
        };
        let share = match fmt::pct(100.0 * self.pair.share) {
            _ if self.pair.share == 0.0 => String::new(),
            share => format!(", {share} % of it still there"),
        };
        let gap = self.pair.gap.map_or(String::new(), |g| format!(", shown {g} replies before"));
        format!("{}{request}{gap}{share}", fmt::one_line(&self.pair.need))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use ctxbench_session::fact::Match;

    #[test]
    fn lost_needs_come_with_the_words_before_and_after() {
        let mut results = testing::forgetful();
        results.runs.retain(|r| r.strategy.label == "codex");
        let need = &mut results.runs[0].facts[0];
        (need.gap, need.request) = (Some(9), Some(3));
        let all = lost(&results, Filter::default()).unwrap();
        let text = to_text(&all);
        assert!(text.contains("1 of 1 needs lost"), "{text}");
        testing::assert_contains(
            &text,
            &["token-ttl (value) “900 s”, needed by u9 in request 3, shown 9 replies before"],
        );
        assert!(text.contains("said: “the token lives 900 s”"), "{text}");
        assert!(text.contains("nearest in a summary: “tokens expire”"), "{text}");
        // A fact that is needed again is described once.
        let again = FactRecord {
            need: "u11".into(),
            request: Some(5),
            gap: None,
            ..results.runs[0].facts[0].clone()
        };
        results.runs[0].facts.push(again);
        let text = to_text(&lost(&results, Filter::default()).unwrap());
        assert!(text.contains("shown 9 replies before; u11 in request 5\n"), "{text}");
        assert_eq!(text.matches("said: ").count(), 1, "{text}");
        assert!(lost(&results, Filter { model: Some("x"), ..Filter::default() }).is_err());
    }

    #[test]
    fn what_stands_there_or_asks_for_no_memory_is_not_lost() {
        let mut results = testing::results();
        let run = &mut results.runs[0];
        let absent = FactRecord {
            found: Match::Absent,
            place: FactPlace::Nowhere,
            counts: false,
            ..run.facts[0].clone()
        };
        run.facts.push(absent);
        assert_eq!(of_run(run).lost, []);
    }
}
