//! The life of one fact: where it was said, what each compaction made of it, and how each need found it.

use std::fmt::Write as _;

use ctxbench_core::fact::FactKind;
use ctxbench_core::nearest;
use ctxbench_core::record::{FactLife, FactMove, FactRecord, Results, RunRecord};
use serde::Serialize;

use crate::csv::word;
use crate::fmt;

/// Which runs to look at; `None` = all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// Scenario id.
    pub scenario: Option<&'a str>,
    /// Label of the strategy, or its bare name.
    pub strategy: Option<&'a str>,
    /// Model.
    pub model: Option<&'a str>,
}

/// What was asked for is not in the results.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{name}` in these results; {hint}")]
pub struct Unknown {
    what: &'static str,
    name: String,
    hint: String,
}

/// A fact in every run that has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained<'a> {
    /// Fact id.
    pub fact: &'a str,
    /// One per run, in the order of the results.
    pub runs: Vec<Life<'a>>,
}

/// A fact in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life<'a> {
    /// Scenario id.
    pub scenario: &'a str,
    /// Label of the strategy.
    pub strategy: &'a str,
    /// Model.
    pub model: &'a str,
    /// Seed, where the run was repeated with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Kind; `None` when nothing needs it.
    pub kind: Option<FactKind>,
    /// Where it was said and what moved it; `None` in results without texts.
    pub life: Option<&'a FactLife>,
    /// What moved it, with the compaction.
    pub moves: Vec<Moved<'a>>,
    /// How each need found it, in the order of the requests.
    pub needs: Vec<&'a FactRecord>,
}

/// A move, and the compaction that made it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved<'a> {
    /// Product's name of the mechanism.
    pub mechanism: &'a str,
    /// Number of the request after it.
    pub before_request: u64,
    /// From where to where, with the words.
    #[serde(flatten)]
    pub moved: &'a FactMove,
}

/// The life of a fact in the runs that the filter lets through.
pub fn explain<'a>(results: &'a Results, fact: &'a str, filter: Filter<'_>) -> Result<Explained<'a>, Unknown> {
    let mut runs: Vec<&RunRecord> = results.runs.iter().collect();
    narrow(&mut runs, "scenario", filter.scenario, |r, name| r.scenario.id == name, |r| &r.scenario.id)?;
    narrow(&mut runs, "strategy", filter.strategy, |r, name| r.strategy.label == name || r.strategy.name == name, |r| &r.strategy.label)?;
    narrow(&mut runs, "model", filter.model, |r, name| r.model == name, |r| &r.model)?;
    let lives: Vec<Life<'a>> = runs.iter().filter_map(|r| life(r, fact)).collect();
    if lives.is_empty() {
        let ids = |r: &&'a RunRecord| r.lives.iter().map(|l| l.fact.as_str()).chain(r.facts.iter().map(|f| f.fact.as_str()));
        return Err(unknown("fact", fact, runs.iter().flat_map(ids)));
    }
    Ok(Explained { fact, runs: lives })
}

fn narrow<'a>(
    runs: &mut Vec<&'a RunRecord>,
    what: &'static str,
    name: Option<&str>,
    fits: impl Fn(&RunRecord, &str) -> bool,
    names: impl Fn(&'a RunRecord) -> &'a str,
) -> Result<(), Unknown> {
    let Some(name) = name else { return Ok(()) };
    let all = runs.clone();
    runs.retain(|r| fits(r, name));
    if runs.is_empty() { Err(unknown(what, name, all.into_iter().map(names))) } else { Ok(()) }
}

/// Most names that an error lists.
const NAMED: usize = 20;

fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Unknown {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let more = known.len().saturating_sub(NAMED);
    let hint = match nearest::nearest(name, &known) {
        _ if known.is_empty() => format!("they hold no {what} at all"),
        near if !near.is_empty() => format!("did you mean {}?", near.join(" or ")),
        _ if more > 0 => format!("known are {} and {more} more", known[..NAMED].join(", ")),
        _ => format!("known are {}", known.join(", ")),
    };
    Unknown { what, name: name.to_string(), hint }
}

fn life<'a>(run: &'a RunRecord, fact: &str) -> Option<Life<'a>> {
    let life = run.lives.iter().find(|l| l.fact == fact);
    let mut needs: Vec<&FactRecord> = run.facts.iter().filter(|f| f.fact == fact).collect();
    if life.is_none() && needs.is_empty() {
        return None;
    }
    needs.sort_by_key(|n| (n.request.unwrap_or(u64::MAX), n.need.clone()));
    let moved = |m: &'a FactMove| {
        let by = run.compactions.iter().find(|c| c.seq == m.compaction);
        Moved { mechanism: by.map_or("unknown", |c| &c.mechanism), before_request: by.map_or(0, |c| c.before_request), moved: m }
    };
    Some(Life {
        scenario: &run.scenario.id,
        strategy: &run.strategy.label,
        model: &run.model,
        seed: run.seed,
        kind: needs.first().map(|n| n.kind),
        moves: life.into_iter().flat_map(|l| &l.moves).map(moved).collect(),
        life,
        needs,
    })
}

impl Explained<'_> {
    /// For people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for (i, run) in self.runs.iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            run.write(&mut out, self.fact);
        }
        out
    }

    /// For machines.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data always serialises") + "\n"
    }
}

impl Life<'_> {
    fn write(&self, out: &mut String, fact: &str) {
        let mut line = |text: String| {
            // Writing to a string never fails.
            let _ = writeln!(out, "{text}");
        };
        let one = fmt::one_line;
        let kind = self.kind.map_or(String::new(), |k| format!(" ({})", k.name()));
        let seed = self.seed.map_or(String::new(), |s| format!(", seed {s}"));
        line(format!("{}{kind} in {} × {} × {}{seed}", one(fact), one(self.scenario), one(self.strategy), one(self.model)));
        match self.life {
            Some(l) if l.arises.is_empty() => line(format!("  never said; a match would be chance: {}", tokens(l))),
            Some(l) => {
                line(format!("  carried by  {}", tokens(l)));
                line(format!("  arises in   {}{}", one(&l.arises), quoted(&l.text)));
                line(format!("  first shown {}", l.first_shown.map_or("in no request".to_string(), |n| format!("in request {n}"))));
            }
            None => line("  these results hold no texts; run again with this ctxbench to see them".to_string()),
        }
        let mut moves = self.moves.iter().peekable();
        for need in &self.needs {
            while let Some(m) = moves.next_if(|m| need.request.is_none_or(|r| m.before_request <= r)) {
                m.write(&mut line);
            }
            line(format!("  needed by {} {}", one(&need.need), told(need)));
        }
        moves.for_each(|m| m.write(&mut line));
        if self.life.is_some_and(|l| !l.arises.is_empty() && l.first_shown.is_some()) && self.moves.is_empty() {
            line("  no compaction moved it".to_string());
        }
        if self.needs.is_empty() && self.life.is_some_and(|l| !l.arises.is_empty()) {
            line("  nothing that counts needs it".to_string());
        }
    }
}

impl Moved<'_> {
    fn write(&self, line: &mut impl FnMut(String)) {
        let m = self.moved;
        let from = place(&m.from);
        line(format!(
            "  compaction {} ({}), before request {}: {from} → {}",
            m.compaction,
            self.mechanism,
            self.before_request,
            place(&m.to)
        ));
        line(format!("    before{}", quoted(&m.before)));
        match (m.to.as_str(), m.after.is_empty()) {
            ("nowhere", true) => line("    after: no line of a summary is near it".to_string()),
            ("nowhere", false) => line(format!("    after, the nearest words of a summary{}", quoted(&m.after))),
            _ => line(format!("    after{}", quoted(&m.after))),
        }
    }
}

fn tokens(l: &FactLife) -> String {
    l.tokens.iter().map(|t| format!("“{}”", fmt::one_line(t))).collect::<Vec<_>>().join(" and ")
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": “{}”", fmt::one_line(text)) }
}

fn place(name: &str) -> &str {
    match name {
        "verbatim" => "verbatim history",
        "restored" => "a restored file",
        "memory" => "memory",
        "summary" => "a summary",
        other => other,
    }
}

/// How a need found the fact, in words.
fn told(n: &FactRecord) -> String {
    let Some(request) = n.request else { return "was never reached: the run ended before it".to_string() };
    let after = format!("in request {request}, after {} compactions", n.compactions_before);
    let mut marks = Vec::new();
    let mut mark = |set: bool, text: &'static str| marks.extend(set.then_some(text));
    mark(n.stale, "only an outdated value was there");
    mark(n.both, "an outdated value was there too");
    mark(n.contradicted, "a summary says something else");
    mark(n.drifted, "a summary has it in altered form");
    mark(n.recoverable == Some(true), "the product's store could bring it back");
    mark(n.recoverable == Some(false), "the product's store could not bring it back");
    let found = match n.place.as_str() {
        "nowhere" => "absent".to_string(),
        p => format!("{} in {}", word(&n.found), place(p)),
    };
    let marks = if marks.is_empty() { String::new() } else { format!("; {}", marks.join("; ")) };
    format!("{after}: {found}{marks}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn what_is_unknown_is_named_with_its_neighbours() {
        let results = sample::results();
        let fails = |fact: &'static str, filter: Filter<'_>| explain(&results, fact, filter).unwrap_err().to_string();
        let near = fails("token-tl", Filter::default());
        assert_eq!(near, "there is no fact `token-tl` in these results; did you mean token-ttl?");
        let strategy = fails("token-ttl", Filter { strategy: Some("codx"), ..Filter::default() });
        assert!(strategy.contains("no strategy `codx`") && strategy.contains("codex"), "{strategy}");
        assert!(explain(&Results::default(), "x", Filter::default()).unwrap_err().to_string().contains("no fact at all"));
    }

    #[test]
    fn moves_and_needs_come_in_the_order_of_requests() {
        let mut results = sample::results();
        let run = results.runs.iter_mut().find(|r| r.strategy.name == "codex" && !r.compactions.is_empty()).unwrap();
        let at = run.compactions[0].before_request;
        let moved = |compaction, from: &str, to: &str| FactMove {
            compaction,
            from: from.into(),
            to: to.into(),
            before: "ttl is 900".into(),
            after: String::new(),
        };
        let moves = vec![moved(0, "verbatim", "nowhere"), moved(99, "summary", "nowhere")];
        run.lives = vec![FactLife { fact: "token-ttl".into(), arises: "c1".into(), first_shown: Some(1), moves, ..Default::default() }];
        let mut need = run.facts[0].clone();
        (need.need, need.request) = ("early".into(), Some(at - 1));
        run.facts.push(need);
        let label = run.strategy.label.clone();
        let text = explain(&results, "token-ttl", Filter { strategy: Some(&label), ..Filter::default() }).unwrap().to_text();
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing in\n{text}"));
        assert!(place("needed by early") < place("compaction 0 (") && place("compaction 0 (") < place("needed by u9"), "{text}");
        assert!(text.contains("no line of a summary is near it"), "{text}");
    }
}
