//! History of one fact: its source, its place after each compaction, and its state at each need.

use std::fmt::{Display, Formatter, Write as _};

use crate::record::{FactLife, FactMove, FactPlace, FactRecord, Results, RunRecord, word};
use ctxbench_session::fact::FactKind;
use ctxbench_util::nearest;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::error::ReportError;
use crate::{fmt, json};

/// Filter for runs; `None` selects all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    pub scenario: Option<&'a str>,
    /// Label of the strategy, or its bare name.
    pub strategy: Option<&'a str>,
    pub model: Option<&'a str>,
}

/// What identifies a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunName<'a> {
    pub scenario: &'a str,
    pub strategy: &'a str,
    pub model: &'a str,
    /// Seed, if the run was repeated with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl<'a> RunName<'a> {
    pub(crate) fn from_run(run: &'a RunRecord) -> RunName<'a> {
        let (scenario, strategy) = (&run.scenario.id, &run.strategy.label);
        RunName { scenario, strategy, model: &run.model, seed: run.seed }
    }
}

impl Display for RunName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let seed = self.seed.map_or(String::new(), |s| format!(", seed {s}"));
        let [scenario, strategy, model] =
            [self.scenario, self.strategy, self.model].map(fmt::one_line);
        write!(f, "{scenario} × {strategy} × {model}{seed}")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained<'a> {
    pub fact: &'a str,
    /// One entry per run, in the order of the results.
    pub runs: Vec<Life<'a>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life<'a> {
    #[serde(flatten)]
    pub run: RunName<'a>,
    /// Kind; `None` if no message needs it.
    pub kind: Option<FactKind>,
    /// Source and moves; `None` in results without texts.
    pub life: Option<&'a FactLife>,
    /// Moves, with their compactions.
    pub moves: Vec<Moved<'a>>,
    /// Needs in chronological order.
    pub needs: Vec<Needed<'a>>,
    /// True if subagents sent some of the requests; the window is then printed with each request.
    #[serde(skip)]
    windows: bool,
    /// Virtual time of the first request that showed it, ms.
    #[serde(skip)]
    first_shown_ms: Option<u64>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needed<'a> {
    /// Subagent of its window; `None` for the main conversation, or if the run did not reach it.
    pub agent: Option<&'a str>,
    /// Virtual time of that request, ms.
    pub at_ms: Option<u64>,
    /// The row of `facts.csv`.
    #[serde(flatten)]
    pub pair: &'a FactRecord,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved<'a> {
    /// Product's name of the mechanism.
    pub mechanism: &'a str,
    /// Number of the next request in the main conversation.
    pub before_request: u64,
    /// Virtual time of that request, ms; 0 if the compaction is unknown.
    #[serde(skip)]
    at_ms: u64,
    /// Places before and after, with excerpts.
    #[serde(flatten)]
    pub moved: &'a FactMove,
}

/// History of a fact in the selected runs.
pub fn explain<'a>(
    results: &'a Results,
    fact: &'a str,
    filter: Filter<'_>,
) -> Result<Explained<'a>, ReportError> {
    let runs = filtered(results, filter)?;
    let lives: Vec<Life<'a>> = runs.iter().filter_map(|r| life(r, fact)).collect();
    if lives.is_empty() {
        let ids = |r: &&'a RunRecord| {
            r.lives.iter().map(|l| l.fact.as_str()).chain(r.facts.iter().map(|f| f.fact.as_str()))
        };
        return Err(unknown("fact", fact, runs.iter().flat_map(ids)));
    }
    Ok(Explained { fact, runs: lives })
}

/// Selected runs; every condition of the filter must match at least one.
pub(crate) fn filtered<'a>(
    results: &'a Results,
    filter: Filter<'_>,
) -> Result<Vec<&'a RunRecord>, ReportError> {
    let mut runs: Vec<&RunRecord> = results.runs.iter().collect();
    let filters: [(&str, Option<&str>, Names); 3] = [
        ("scenario", filter.scenario, |r| [r.scenario.id.as_str(); 2]),
        ("strategy", filter.strategy, |r| [&r.strategy.label, &r.strategy.name]),
        ("model", filter.model, |r| [r.model.as_str(); 2]),
    ];
    for (what, name, names) in filters {
        let Some(name) = name else { continue };
        let all = runs.clone();
        runs.retain(|r| names(r).contains(&name));
        if runs.is_empty() {
            return Err(unknown(what, name, all.into_iter().map(|r| names(r)[0])));
        }
    }
    Ok(runs)
}

/// Names of runs; an error lists the first.
type Names = fn(&RunRecord) -> [&str; 2];

/// Maximum number of names in an error.
const NAMED: usize = 6;

fn unknown<'a>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> ReportError {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let more = known.len().saturating_sub(NAMED);
    let all = match more {
        _ if known.is_empty() => format!("they hold no {what} at all"),
        0 => format!("known are {}", known.join(", ")),
        _ => format!("known are {} and {more} more", known[..NAMED].join(", ")),
    };
    let hint = nearest::hint_or(name, &known, &all);
    ReportError::Refused(format!("there is no {what} `{name}` in these results; {hint}"))
}

fn life<'a>(run: &'a RunRecord, fact: &str) -> Option<Life<'a>> {
    let life = run.lives.iter().find(|l| l.fact == fact);
    let request = |n: u64| run.requests.iter().find(|r| r.seq == n);
    let needed = |pair: &'a FactRecord| {
        let at = pair.request.and_then(request);
        Needed { agent: at.and_then(|r| r.agent.as_deref()), at_ms: at.map(|r| r.at_ms), pair }
    };
    let mut needs: Vec<Needed<'_>> =
        run.facts.iter().filter(|f| f.fact == fact).map(needed).collect();
    if life.is_none() && needs.is_empty() {
        return None;
    }
    // Requests of subagents are numbered after those of the main conversation, whatever their time.
    needs.sort_by_key(|n| {
        (n.at_ms.unwrap_or(u64::MAX), n.pair.request.unwrap_or(u64::MAX), n.pair.need.clone())
    });
    let moved = |m: &'a FactMove| {
        let by = run.compactions.iter().find(|c| c.seq == m.compaction);
        Moved {
            mechanism: by.map_or("unknown", |c| &c.mechanism),
            before_request: by.map_or(0, |c| c.before_request),
            at_ms: by.map_or(0, |c| c.at_ms),
            moved: m,
        }
    };
    Some(Life {
        run: RunName::from_run(run),
        kind: needs.first().map(|n| n.pair.kind),
        moves: life.into_iter().flat_map(|l| &l.moves).map(moved).collect(),
        life,
        needs,
        windows: run.requests.iter().any(|r| r.agent.is_some()),
        first_shown_ms: life.and_then(|l| l.first_shown).and_then(request).map(|r| r.at_ms),
    })
}

impl Explained<'_> {
    /// Formats the histories as text for people.
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

    /// Formats the histories as JSON.
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }
}

impl Life<'_> {
    fn write(&self, out: &mut String, fact: &str) {
        let mut line = |text: String| {
            // Writing to a string never fails.
            let _ = writeln!(out, "{text}");
        };
        let one = fmt::one_line;
        let kind = self.kind.map_or(String::new(), |k| format!(" ({k})"));
        line(format!("{}{kind} in {}", one(fact), self.run));
        let said = self.life.filter(|l| !l.arises.is_empty());
        match (self.life, said) {
            (_, Some(l)) => {
                line(format!("  carried by  {}", quoted_list(&l.tokens, LISTED)));
                line(format!("  arises in   {}{}", one(&l.arises), quoted(&l.text)));
                let to = if self.windows { " to the main conversation" } else { "" };
                let at = self.first_shown_ms.filter(|_| self.windows);
                let at = at.map_or(String::new(), |ms| format!(", at {}", seconds(ms)));
                let request = l.first_shown.map(|n| format!("in request {n}{at}"));
                let request = request.unwrap_or_else(|| "in no request".into());
                line(format!("  first shown{to} {request}"));
            }
            (Some(l), None) => line(format!(
                "  never said; a match would be chance: {}",
                quoted_list(&l.tokens, LISTED)
            )),
            (None, None) => line(
                "  these results hold no texts; run again with this ctxbench to see them".into(),
            ),
        }
        let mut moves = self.moves.iter().peekable();
        for need in &self.needs {
            while let Some(m) = moves.next_if(|m| m.precedes(need)) {
                m.write(self.windows, &mut line);
            }
            line(format!("  needed by {} {}", one(&need.pair.need), need.describe(self.windows)));
        }
        moves.for_each(|m| m.write(self.windows, &mut line));
        if said.is_some_and(|l| l.first_shown.is_some()) && self.moves.is_empty() {
            line(format!("  no compaction{} moved it", if self.windows { OF_MAIN } else { "" }));
        }
        if self.needs.is_empty() && said.is_some() {
            line("  nothing that counts needs it".into());
        }
    }
}

impl Moved<'_> {
    /// True if this change came before the need. Compares request numbers in the main conversation,
    /// which has the compactions, and virtual time in other windows.
    fn precedes(&self, need: &Needed<'_>) -> bool {
        match (need.pair.request, need.agent, need.at_ms) {
            (None, ..) => true,
            (Some(_), Some(_), Some(at)) => self.at_ms <= at,
            (Some(n), ..) => self.before_request <= n,
        }
    }

    fn write(&self, windows: bool, line: &mut impl FnMut(String)) {
        let m = self.moved;
        let from = place_name(m.from);
        let whose = if windows { OF_MAIN } else { "" };
        line(format!(
            "  compaction {} ({}){whose}, before request {}: {from} → {}",
            m.compaction,
            self.mechanism,
            self.before_request,
            place_name(m.to)
        ));
        line(format!("    before{}", quoted(&m.before)));
        let after = match (m.to, m.after.is_empty()) {
            (FactPlace::Nowhere, true) => ": no line of a summary is near it".into(),
            (FactPlace::Nowhere, false) => {
                format!(", the nearest words of a summary{}", quoted(&m.after))
            }
            _ => quoted(&m.after),
        };
        line(format!("    after{after}"));
    }
}

/// Maximum number of literals that are listed. Content that was fetched again has up to 40 lines.
pub(crate) const LISTED: usize = 5;

/// Formats literals, at most `most`: `“a” and “b”`.
pub(crate) fn quoted_list(literals: &[String], most: usize) -> String {
    let quoted = literals.iter().take(most).map(|t| format!("“{}”", fmt::one_line(t)));
    let more = literals.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("{more} more"));
    quoted.chain(more).collect::<Vec<_>>().join(" and ")
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": “{}”", fmt::one_line(text)) }
}

fn place_name(place: FactPlace) -> &'static str {
    match place {
        FactPlace::Verbatim => "verbatim history",
        FactPlace::Restored => "a restored file",
        FactPlace::Memory => "memory",
        FactPlace::Summary => "a summary",
        FactPlace::Nowhere => "nowhere",
    }
}

impl Needed<'_> {
    /// Describes the state of the fact; `windows` adds the window and the time of the request.
    fn describe(&self, windows: bool) -> String {
        let n = self.pair;
        let Some(request) = n.request else {
            return "was never reached: the run ended before it".to_string();
        };
        let window = self.agent.map(|a| format!("subagent {}", fmt::one_line(a)));
        let window = window.unwrap_or_else(|| "main conversation".into());
        let at = self.at_ms.filter(|_| windows);
        let place_and_time =
            at.map_or(String::new(), |ms| format!(" ({window}, at {})", seconds(ms)));
        let compactions = fmt::pluralize(n.compactions_before, "compaction");
        let mut out = format!("in request {request}{place_and_time}, after {compactions}: ");
        out += &match n.place {
            FactPlace::Nowhere => "absent".to_string(),
            p => format!("{} in {}", word(&n.found), place_name(p)),
        };
        for (is_so, remark) in [
            (n.undelivered, "; no strategy could show it: nobody says it in this window before"),
            (n.stale, "; only an outdated value was there"),
            (n.both, "; an outdated value was there too"),
        ] {
            out += if is_so { remark } else { "" };
        }
        out
    }
}

/// Suffix for compactions of the main conversation; compactions of subagents are only counted.
const OF_MAIN: &str = " of the main conversation";

/// Formats a virtual time.
fn seconds(ms: u64) -> String {
    format!("{} s", fmt::exact(ms as f64 / 1_000.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn results_without_facts_say_so() {
        let none = explain(&Results::default(), "x", Filter::default()).unwrap_err().to_string();
        assert!(none.contains("no fact at all"), "{none}");
    }

    #[test]
    fn moves_and_needs_come_in_the_order_of_requests() {
        let mut results = testing::forgetful();
        let run = testing::labelled(&mut results, "codex").next().unwrap();
        let at = run.compactions[0].before_request;
        let moves = &mut run.lives[0].moves;
        moves[0].after = "".into();
        moves.push(FactMove { compaction: 99, from: FactPlace::Summary, ..moves[0].clone() });
        let mut need = run.facts[0].clone();
        (need.need, need.request) = ("early".into(), Some(at - 1));
        run.facts.push(need);
        let codex = Filter { strategy: Some("codex"), ..Filter::default() };
        let text = explain(&results, "token-ttl", codex).unwrap().to_text();
        let place =
            |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing in\n{text}"));
        let in_order = ["needed by early", "compaction 0 (", "needed by u9"];
        assert!(in_order.map(place).is_sorted(), "{text}");
        assert!(text.contains("no line of a summary is near it"), "{text}");
        assert!(
            !text.contains("subagent") && !text.contains("main conversation"),
            "one window needs no name: {text}"
        );
    }

    #[test]
    fn with_subagents_windows_are_named_and_time_decides() {
        let mut results = testing::forgetful();
        results.runs.retain(|r| r.strategy.label == "codex");
        let run = &mut results.runs[0];
        // Three requests of the main conversation, two of a subagent between the first and the
        // second, numbered after them.
        run.requests.truncate(5);
        for (r, (at, agent)) in run.requests.iter_mut().zip([
            (0, None),
            (60_000, None),
            (63_250, None),
            (1_000, Some("s")),
            (4_000, Some("s")),
        ]) {
            (r.at_ms, r.agent) = (at, agent.map(Into::into));
        }
        run.compactions.truncate(1);
        (run.compactions[0].before_request, run.compactions[0].at_ms) = (1, 59_000);
        run.lives[0].first_shown = Some(2);
        let need =
            |need: &str, request| FactRecord { need: need.into(), request, ..run.facts[0].clone() };
        run.facts = vec![need("u3", Some(1)), need("s4", Some(4)), need("u9", None)];
        let found = explain(&results, "token-ttl", Filter::default()).unwrap();
        let text = found.to_text();
        let place =
            |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing in\n{text}"));
        place("first shown to the main conversation in request 2, at 63.25 s");
        let order = [
            place("needed by s4 in request 4 (subagent s, at 4 s), after"),
            place("compaction 0 (summary) of the main conversation, before request 1: "),
            place("needed by u3 in request 1 (main conversation, at 60 s), after"),
            place("needed by u9 was never reached"),
        ];
        assert!(order.is_sorted(), "{text}");
        let json: serde_json::Value = serde_json::from_str(&found.to_json()).unwrap();
        let needs = json["runs"][0]["needs"].as_array().unwrap();
        assert_eq!(
            (&needs[0]["need"], &needs[0]["agent"], &needs[0]["at_ms"]),
            (&"s4".into(), &"s".into(), &4_000.into())
        );
        assert!(needs[1].get("agent").is_none() && needs[2].get("at_ms").is_none(), "{json}");
    }
}
