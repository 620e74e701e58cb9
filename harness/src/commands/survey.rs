//! `ctxbench list sessions`: prints one row for each recorded session.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use crate::choice::Choice;
use crate::survey::SessionSummary;
use anyhow::bail;
use ctxbench_replay::billing::BilledCalls;
use ctxbench_reports::{one_line, printable};
use ctxbench_scenarios::bounds::is_about_a_number;
use ctxbench_scenarios::formats::{is_about_damage, millis};
use ctxbench_scenarios::{LoadError, Scenario, is_path};
use ctxbench_util::calendar;
use ctxbench_util::cut::cut;
use ctxbench_util::plural::pluralize;
use serde_json::json;

use super::corpus::{Progress, at, choose};
use super::folders;
use super::output::{check_printed, escape};

/// A row and the path of its session.
struct Placed {
    path: String,
    row: SessionSummary,
    /// The first note on a replaced number or a lost line, and how many there are.
    damage: Option<(String, usize)>,
}

/// Lists the sessions. Each row is written as soon as its session is read.
pub(super) fn list(inputs: &[String], choice: &Choice, as_json: bool) -> anyhow::Result<()> {
    let found = if inputs.is_empty() { folders::found() } else { Vec::new() };
    let found: Vec<String> = found.iter().map(|(_, path)| path.display().to_string()).collect();
    let is_search = inputs.is_empty();
    let inputs = if is_search { &found } else { inputs };
    if let Some(gone) = inputs.iter().find(|i| is_path(i) && !Path::new(i).exists()) {
        bail!("{gone}: no such file or folder");
    }
    let mut out = Out { json: as_json, ..Out::default() };
    let placed = |place: &Path, scenario: Scenario| {
        let path = place.display().to_string();
        let is_about = |w: &&String| is_about_a_number(w) || is_about_damage(w);
        let all = scenario.warnings.iter().filter(is_about);
        let damage = all.clone().next().map(|first| (first.clone(), all.count()));
        Placed { path, row: SessionSummary::new(&scenario), damage }
    };
    let listed = choose(inputs, choice, &placed, &mut |shown, one| match one {
        Ok(placed) => out.session(shown, placed),
        // An agent that has no session yet.
        Err((_, e)) if is_search && e.is_other() => Ok(()),
        Err((place, e)) => out.damaged(shown, place, &e),
    })?;
    if is_search && out.sessions == 0 && out.damaged == 0 {
        bail!(
            "no sessions found in the folders of {}; give a file or a folder: ctxbench list \
             sessions DIR",
            folders::agents().join(", ")
        );
    }
    let printed = listed.and_then(|(skipped, left_out)| {
        out.totals()?;
        let prices =
            out.prices.iter().map(|(what, n)| format!("{what} ({})", pluralize(*n, "session")));
        prices.for_each(|line| report!("note: {line}"));
        out.notes.iter().chain(&left_out).for_each(|line| report!("note: {line}"));
        match is_search {
            // The folders of agents also have other files, which nobody asked for.
            true => report!("{}", out.summary_by_agent()),
            false => skipped.report_all(),
        }
        Ok(())
    });
    match printed {
        Ok(()) if out.sessions == 0 && out.damaged > 0 => {
            bail!("no session could be read; the rows say why")
        }
        other => check_printed(other),
    }
}

#[derive(Default)]
struct Out {
    json: bool,
    wrote: bool,
    sessions: usize,
    /// Tokens of the sessions in which the provider counted them.
    tokens: u64,
    cost_usd: f64,
    /// Number of sessions with a known cost.
    priced: u64,
    /// Whether the cost of some of them is a lower bound.
    is_minimum: bool,
    damaged: u64,
    /// Number of sessions of each agent.
    agents: BTreeMap<String, usize>,
    /// Notes on replaced numbers and lost lines.
    notes: Vec<String>,
    /// Notes on prices, with the number of sessions.
    prices: BTreeMap<String, usize>,
    /// Calls of the sessions so far.
    billed: BilledCalls,
}

impl Out {
    fn line(&mut self, shown: &Progress, line: &str) -> io::Result<()> {
        let head = (!self.json && !self.wrote).then(|| {
            columns([
                "agent", "id", "model", "date", "steps", "tokens", "peak", "comp.", "cost", "path",
            ])
        });
        self.wrote = true;
        shown.aside(|| {
            let mut out = io::stdout().lock();
            head.iter().try_for_each(|head| writeln!(out, "{head}"))?;
            writeln!(out, "{line}")?;
            out.flush()
        })
    }

    fn session(&mut self, shown: &Progress, placed: Placed) -> io::Result<()> {
        let Placed { path, mut row, damage } = placed;
        row.bill_once(&mut self.billed, self.sessions);
        if let Some((first, all)) = damage {
            let more = if all > 1 { format!(", and {} more", all - 1) } else { String::new() };
            self.notes.push(format!("{path}: {first}{more}"));
        }
        for note in &row.cost_notes {
            *self.prices.entry(one_line(note)).or_default() += 1;
        }
        self.sessions += 1;
        *self.agents.entry(row.agent.clone().unwrap_or_default()).or_default() += 1;
        self.tokens += if row.tokens_are_counted { row.tokens } else { 0 };
        self.priced += u64::from(row.cost_usd.is_some());
        self.cost_usd += row.cost_usd.unwrap_or_default();
        let is_minimum = row.cost_is_minimum && row.cost_usd.is_some();
        self.is_minimum |= is_minimum;
        if self.json {
            let mut value = serde_json::to_value(&row).map_err(io::Error::other)?;
            value["path"] = path.as_str().into();
            return self.line(shown, &value.to_string());
        }
        let peak = match (row.peak_is_counted, row.counted_steps < row.steps) {
            (true, false) => row.peak.to_string(),
            (true, true) => format!("≥{}", row.peak),
            (false, _) => format!("~{}", row.peak),
        };
        let tokens = format!("{}{}", if row.tokens_are_counted { "" } else { "~" }, row.tokens);
        let began = row.started.as_deref().and_then(millis);
        let began = began.and_then(|ms| u64::try_from(ms).ok()).map(calendar::iso);
        let line = columns([
            row.agent.as_deref().unwrap_or("-"),
            &row.id,
            row.model.as_deref().unwrap_or("n/a"),
            began.as_deref().and_then(|b| b.get(..10)).unwrap_or("n/a"),
            &row.steps.to_string(),
            &tokens,
            &peak,
            &row.compactions.to_string(),
            &format!("{}{}", if is_minimum { "≥" } else { "" }, dollars(row.cost_usd)),
            &path,
        ]);
        self.line(shown, &line)
    }

    fn damaged(&mut self, shown: &Progress, place: &Path, why: &LoadError) -> io::Result<()> {
        self.damaged += 1;
        if self.json {
            let line =
                json!({"path": place.display().to_string(), "error": why.to_string()}).to_string();
            return self.line(shown, &line);
        }
        self.line(shown, &escape(&format!("error: {}", at(place, why))))
    }

    /// Returns the number of sessions of each agent, and commands for them.
    fn summary_by_agent(&self) -> String {
        let name =
            |agent: &str| if agent.is_empty() { "an unknown agent" } else { agent }.to_string();
        let all = self.agents.iter().map(|(agent, n)| format!("{n} of {}", name(agent)));
        format!(
            "{}. Contents of a session: ctxbench explain PATH --contents. Cost of its next message, \
             compacted or not: ctxbench explain PATH --next. Your settings: ctxbench advise.",
            all.collect::<Vec<_>>().join(", ")
        )
    }

    /// Writes the last line of the table.
    fn totals(&mut self) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let cost = match self.priced {
            0 => "cost as recorded n/a".to_string(),
            n => {
                let bound = if self.is_minimum { "at least " } else { "" };
                format!("{bound}{} as recorded in {n} of them", dollars(Some(self.cost_usd)))
            }
        };
        let sessions = pluralize(self.sessions, "session");
        let mut line = format!("{sessions}, {} tokens as recorded, {cost}", self.tokens);
        if self.damaged > 0 {
            line += &format!("; {} cannot be read", self.damaged);
        }
        writeln!(io::stdout().lock(), "{line}")
    }
}

fn dollars(usd: Option<f64>) -> String {
    usd.map_or_else(|| "n/a".to_string(), |usd| format!("${usd:.2}"))
}

/// Aligns the cells of a row. The last column has no fixed width.
fn columns(words: [&str; 10]) -> String {
    let [agent, id, model, date, steps, tokens, peak, compactions, cost, path] = words;
    let cut = |word: &str, most| cut(&printable(word), most);
    let (agent, id, model) = (cut(agent, 18), cut(id, 24), cut(model, 24));
    let path = printable(path);
    format!(
        "{agent:<18} {id:<24} {model:<24} {date:<10} {steps:>6} {tokens:>9} {peak:>9} \
         {compactions:>5} {cost:>9}  {path}"
    )
}
