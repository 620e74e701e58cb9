//! Shared parts of all reports: blocks of runs, row order, headings, remarks and failures.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::record::{BackgroundRecord, Fate, IntegrityFailure, Results, Rule, RunRecord, Status};
use ctxbench_core::strategy::Standing;
use ctxbench_util::natural;

use crate::group::grouped;
use crate::{fmt, seeds};

/// Runs of one scenario with one model, and with one summariser if the results have several: the
/// unit of a table, a section or a set of plots.
pub(crate) struct ReportBlock<'a> {
    /// Rows: hypothetical ones, then products, then controls.
    pub(crate) runs: Vec<&'a RunRecord>,
    /// True if the results have several models.
    several_models: bool,
    /// Summariser of the block, if there are several. Rows without a summary are in the block of
    /// each.
    pub(crate) summariser: Option<&'a str>,
}

impl<'a> ReportBlock<'a> {
    /// First run; a block is never empty.
    pub(crate) fn first(&self) -> &'a RunRecord {
        self.runs[0]
    }

    /// Largest window of the rows with a limited one, tokens; `None` without such a row.
    pub(crate) fn window(&self) -> Option<u64> {
        self.runs
            .iter()
            .filter(|r| {
                !matches!(r.strategy.standing, Standing::Hypothetical | Standing::Recorded)
                    && r.status != Status::NotApplicable
            })
            .map(|r| r.window)
            .max()
            .filter(|w| *w > 0)
    }

    pub(crate) fn title(&self) -> String {
        let s = &self.first().scenario;
        let title = fmt::one_line(&s.title);
        if title.is_empty() || title == s.id {
            fmt::one_line(&s.id)
        } else {
            format!("{}: {title}", fmt::one_line(&s.id))
        }
    }

    /// Id, with model and summariser if there are several.
    pub(crate) fn name(&self) -> String {
        let mut name = fmt::one_line(&self.first().scenario.id);
        if self.several_models {
            name.push_str(&format!(", {}", fmt::one_line(&self.first().model)));
        }
        name.extend(self.summariser.map(|s| format!(", summaries: {}", fmt::one_line(s))));
        name
    }

    /// Suffix of file names: the model and the summariser, each only if there are several.
    pub(crate) fn suffix(&self) -> String {
        let model = self.several_models.then(|| self.first().model.as_str());
        let parts = model.into_iter().chain(self.summariser);
        parts.map(|part| format!("-{}", fmt::slug(part))).collect()
    }

    /// Model, window and scale in one line.
    pub(crate) fn terms(&self) -> String {
        let r = self.first();
        let unlimited = self.runs.iter().any(|r| {
            r.strategy.standing == Standing::Hypothetical && r.status != Status::NotApplicable
        });
        let window = match self.window() {
            Some(1) => "window 1 token".to_string(),
            Some(w) => format!("window {} tokens", fmt::tokens(w as f64)),
            None if unlimited => "no window limit".to_string(),
            None => "window unknown".to_string(),
        };
        let scale = if r.scenario.scale == 1.0 || r.scenario.scale == 0.0 {
            String::new()
        } else {
            format!(", all sizes × {}", fmt::exact(r.scenario.scale))
        };
        let origin = if r.scenario.recorded { "recorded" } else { "scripted" };
        let summaries =
            self.summariser.map_or(String::new(), |s| format!(", summaries: {}", fmt::one_line(s)));
        let why = r.scenario.not_compared().map_or(String::new(), |why| format!(", {why}"));
        format!("{}, {window}{scale}, {origin}{why}{summaries}", fmt::one_line(&r.model))
    }
}

/// Groups runs by scenario and model, in order of first appearance, and then by summariser.
pub(crate) fn blocks(results: &Results) -> Vec<ReportBlock<'_>> {
    Several::from_results(results).blocks(&results.runs)
}

/// What the results have several of. Known, the blocks can be built session by session.
pub(crate) struct Several {
    models: bool,
    summarisers: bool,
}

impl Several {
    pub(crate) fn from_results(results: &Results) -> Several {
        let summarisers = summarisers(results).len() > 1;
        Several { models: models(results).len() > 1, summarisers }
    }

    /// Builds the blocks of some sessions.
    pub(crate) fn blocks<'a>(&self, runs: &'a [RunRecord]) -> Vec<ReportBlock<'a>> {
        let mut out = Vec::new();
        for all in grouped(runs, |r| (&r.scenario.id, &r.model)) {
            let here: BTreeSet<&str> = all.iter().filter_map(|r| r.summariser.as_deref()).collect();
            let split = self.summarisers && !here.is_empty();
            let parts: Vec<Option<&str>> =
                if split { here.into_iter().map(Some).collect() } else { vec![None] };
            for summariser in parts {
                let belongs = |r: &&RunRecord| {
                    summariser.is_none()
                        || r.summariser.is_none()
                        || r.summariser.as_deref() == summariser
                };
                let mut runs: Vec<&RunRecord> = all.iter().copied().filter(belongs).collect();
                runs.sort_by(|a, b| row_order(a, b));
                out.push(ReportBlock { runs, several_models: self.models, summariser });
            }
        }
        out
    }
}

/// Distinct summarisers of the results, sorted.
pub(crate) fn summarisers(results: &Results) -> BTreeSet<&str> {
    results.runs.iter().filter_map(|r| r.summariser.as_deref()).collect()
}

/// Results with one row for all seeds, and with the summariser in the label (`codex [ideal]`) if
/// there are several. Used by formats that identify rows by scenario, strategy and model only.
pub(crate) fn told_apart(results: &Results) -> Cow<'_, Results> {
    let several = summarisers(results).len() > 1;
    let mut out = seeds::averaged(results);
    if several {
        for r in &mut out.to_mut().runs {
            let summariser = r.summariser.iter().map(|s| format!(" [{s}]"));
            r.strategy.label.extend(summariser);
        }
    }
    out
}

/// Distinct models of the results, sorted.
pub(crate) fn models(results: &Results) -> BTreeSet<&str> {
    results.runs.iter().map(|r| r.model.as_str()).collect()
}

/// `scenario × strategy`, with the model when there are several.
pub(crate) fn name(scenario: &str, strategy: &str, model: &str, several_models: bool) -> String {
    if several_models {
        format!("{scenario} × {strategy} × {model}")
    } else {
        format!("{scenario} × {strategy}")
    }
}

/// Order of rows: by rank, then by name.
pub(crate) fn row_order(a: &RunRecord, b: &RunRecord) -> Ordering {
    let labels = || natural::order(&a.strategy.label, &b.strategy.label);
    rank(a).cmp(&rank(b)).then_with(labels)
}

/// Rank of a row: rows above the products, the products, rows below.
fn rank(r: &RunRecord) -> u8 {
    match r.strategy.standing {
        Standing::Recorded => 0,
        Standing::Hypothetical => 1,
        Standing::Contender => 2,
        Standing::Control => 3,
    }
}

/// Label of the outcome of a run that did not finish.
fn end(status: Status) -> Option<&'static str> {
    match status {
        Status::Completed | Status::NotApplicable => None,
        Status::Overflow => Some("full"),
        Status::Failed => Some("quit"),
        Status::Livelock => Some("loop"),
        Status::Error => Some("error"),
    }
}

/// Steps taken, and the outcome of a run that did not finish.
pub(crate) fn steps(r: &RunRecord) -> String {
    if r.status == Status::NotApplicable {
        return "n/a".into();
    }
    let steps = format!("{}/{}", r.summary.steps_completed, r.summary.steps_total);
    end(r.status).map_or(steps.clone(), |word| format!("{steps} {word}"))
}

/// Outcome of a run that did not finish, for a sentence that begins with its strategy.
pub(crate) fn ending(r: &RunRecord) -> Option<String> {
    let why = r.error.as_deref().map(fmt::one_line);
    let cause = match (r.status, why) {
        (Status::Completed, _) => return None,
        (Status::NotApplicable, why) => {
            return Some(format!("cannot run: {}", why.as_deref().unwrap_or("no reason given")));
        }
        (Status::Overflow, _) => "prompt too long for the window".into(),
        (Status::Livelock, None) => "no progress".into(),
        (Status::Livelock, Some(why)) => format!("no progress: {why}"),
        (Status::Failed | Status::Error, why) => why.unwrap_or_else(|| "no reason given".into()),
    };
    let s = &r.summary;
    Some(format!("failed at reply {} of {}: {cause}", s.steps_completed, s.steps_total))
}

/// Broken rules as text, each with its number and its first case.
pub(crate) fn broken_rules(r: &RunRecord) -> Option<String> {
    let times = |n: usize| if n == 1 { "once".to_string() } else { format!("{n} times") };
    let told = |broken: &Vec<&IntegrityFailure>| {
        let (first, times) = (broken[0], times(broken.len()));
        let detail = fmt::one_line(&first.detail);
        format!("{} {times}, first at request {}: {detail}", first.rule.deed(), first.request)
    };
    let rules: Vec<String> = grouped(&r.integrity, |f| f.rule).iter().map(told).collect();
    match r.broken_rules() as usize {
        0 => None,
        n if rules.is_empty() => Some(format!("broke a rule {}", times(n))),
        _ => Some(rules.join("; ")),
    }
}

/// Why a row has no figures to compare: its outcome and its broken rules.
pub(crate) fn failure(r: &RunRecord) -> Option<String> {
    // A prompt over the window ends a run with the same text.
    let same = |f: &IntegrityFailure| f.rule == Rule::OverTheWindow;
    let is_told = r.status == Status::Overflow && r.integrity.iter().all(same);
    let rules = broken_rules(r).filter(|_| !is_told);
    let parts: Vec<String> = ending(r).into_iter().chain(rules).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Remarks of a row, the most serious first.
pub(crate) fn notes(r: &RunRecord) -> Vec<String> {
    let mut out: Vec<String> = failure(r).into_iter().collect();
    match r.strategy.standing {
        Standing::Recorded => out.push("by the provider's counters".into()),
        Standing::Hypothetical | Standing::Control | Standing::Contender => {}
    }
    let real = r.strategy.program.as_deref().map(fmt::one_line);
    out.extend(real.map(|program| format!("real: {program}")));
    out.extend(r.note.as_deref().map(fmt::one_line).filter(|n| !n.is_empty()));
    out.extend(races(&r.background));
    let s = &r.summary;
    if s.provider_overflows > 0 && r.status != Status::Overflow {
        out.push(format!("prompt refused as too long {}×", s.provider_overflows));
    }
    if s.user_interventions > 0 {
        out.push(fmt::pluralize(s.user_interventions, "user intervention"));
    }
    out
}

/// Outcomes of the background summaries, unless all were in time.
fn races(all: &[BackgroundRecord]) -> Option<String> {
    let phrase = |fate| match fate {
        Fate::InTime => "in time",
        Fate::LateWaited => "late and waited for",
        Fate::LateProceeded => "late, not waited for",
        Fate::Cancelled => "cancelled",
        Fate::Stale => "stale",
        Fate::Failed => "failed",
    };
    let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
    all.iter().for_each(|b| *counts.entry(b.fate).or_default() += 1);
    let parts: Vec<String> = counts.iter().map(|(f, n)| format!("{n} {}", phrase(*f))).collect();
    counts
        .keys()
        .any(|f| *f != Fate::InTime)
        .then(|| format!("background summaries: {}", parts.join(", ")))
}

/// What was run: program, model, window and number of strategies.
pub(crate) fn heading(results: &Results) -> String {
    let distinct =
        |of: fn(&RunRecord) -> &str| -> BTreeSet<&str> { results.runs.iter().map(of).collect() };
    let models = distinct(|r| &r.model);
    let windows: BTreeSet<u64> = blocks(results).iter().filter_map(ReportBlock::window).collect();
    let tokens = |w: &u64| fmt::tokens(*w as f64);
    let window = windows.last().map(|most| match windows.first() {
        Some(least) if least < most => {
            format!(", {}–{} windows", tokens(least), tokens(most))
        }
        _ => format!(", {} window", tokens(most)),
    });
    let model = match models.len() {
        1 => models.into_iter().map(fmt::one_line).collect(),
        n => fmt::pluralize(n, "model"),
    };
    let parts = [
        fmt::one_line(&results.generator),
        model + &window.unwrap_or_default(),
        strategies(&results.runs),
    ];
    parts.join(" · ")
}

/// Formats the number of strategies, without controls: `12 strategies`.
pub(crate) fn strategies(runs: &[RunRecord]) -> String {
    let rows = runs.iter().filter(|r| r.strategy.standing != Standing::Control);
    let labels: BTreeSet<&str> = rows.map(|r| &*r.strategy.label).collect();
    fmt::pluralize(labels.len(), "strategy")
}

/// Names and parameters of the modelled figures.
pub(crate) fn modelled(results: &Results) -> String {
    let one = |(name, value): (&String, &String)| {
        format!("{} = {}", fmt::one_line(name), fmt::one_line(value))
    };
    let all: Vec<String> = results.assumptions.iter().map(one).collect();
    if all.is_empty() {
        return "Modelled: not stated in these results".into();
    }
    format!("Modelled: {}", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn an_unlimited_window_is_not_an_unknown_one() {
        let says = |results: &Results, window: &str| {
            let told = format!("claude-sonnet-4-6, {window}, all sizes × 0.5, scripted");
            assert_eq!(blocks(results)[0].terms(), told);
        };
        let mut results = testing::of([testing::run("s", "reference", 1)]);
        says(&results, "no window limit");
        results.runs.push(testing::run("s", "codex", 1));
        says(&results, "window 200k tokens");
        // The recorded window may differ from the requested one.
        let mut recorded = testing::run("s", "as-recorded", 1);
        (recorded.strategy.standing, recorded.window) = (Standing::Recorded, 1_000_000);
        results.runs.push(recorded);
        assert!(blocks(&results)[0].terms().contains("window 200k tokens"));
        results.runs.iter_mut().for_each(|r| r.status = Status::NotApplicable);
        says(&results, "window unknown");
    }

    #[test]
    fn races_are_silent_when_all_is_well() {
        let of = |fate| BackgroundRecord {
            request: 0,
            spawned_ms: 0,
            requests: 1,
            before_request: None,
            delivered_ms: None,
            waited_ms: 0,
            fate,
        };
        assert_eq!(races(&[]), None);
        assert_eq!(races(&[of(Fate::InTime)]), None);
        let some = races(&[of(Fate::Stale), of(Fate::InTime), of(Fate::Stale)]);
        assert_eq!(some.as_deref(), Some("background summaries: 1 in time, 2 stale"));
    }
}
