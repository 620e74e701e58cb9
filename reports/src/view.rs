//! Shared parts of all reports: blocks of runs, row order, headings, remarks and failures.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::record::{BackgroundRecord, Fate, Results, Rule, RunRecord, Status, yardstick};
use ctxbench_core::strategy::Standing;
use ctxbench_util::natural;

use crate::group::grouped;
use crate::metrics::Metric;
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
        let test = match &r.scenario.counted_as {
            Some(other) => format!(", counted as {}", fmt::one_line(other)),
            None if r.scenario.mechanism => ", test of a mechanism".to_string(),
            None => String::new(),
        };
        format!("{}, {window}{scale}, {origin}{test}{summaries}", fmt::one_line(&r.model))
    }
}

/// One figure of a row in a table of strategies.
pub(crate) struct Scored {
    pub(crate) text: String,
    /// True for the best value among the rows that can win.
    pub(crate) best: bool,
}

impl ReportBlock<'_> {
    /// Figures of every row in these metrics.
    pub(crate) fn figures(&self, metrics: &[&'static Metric]) -> Vec<Vec<Scored>> {
        let columns: Vec<(&'static Metric, Option<String>)> =
            metrics.iter().map(|m| (*m, m.best(&self.runs))).collect();
        let cell = |r: &RunRecord, metric: &'static Metric, best: &Option<String>| {
            let text = metric.text(r);
            let best = r.can_win() && best.as_ref() == Some(&text);
            Scored { text, best }
        };
        let row = |r: &&RunRecord| columns.iter().map(|(m, best)| cell(r, m, best)).collect();
        self.runs.iter().map(row).collect()
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

/// Outcome of a run that did not finish: a short label for a column, and a phrase.
pub(crate) fn end(status: Status) -> Option<(&'static str, &'static str)> {
    match status {
        Status::Completed | Status::NotApplicable => None,
        Status::Overflow => Some(("full", "window full")),
        Status::Failed => Some(("quit", "gave up")),
        Status::Livelock => Some(("loop", "no progress")),
        Status::Error => Some(("error", "error")),
    }
}

/// Steps taken, and the outcome of a run that did not finish.
pub(crate) fn steps(r: &RunRecord) -> String {
    if r.status == Status::NotApplicable {
        return "n/a".into();
    }
    let steps = format!("{}/{}", r.summary.steps_completed, r.summary.steps_total);
    end(r.status).map_or(steps.clone(), |(word, _)| format!("{steps} {word}"))
}

/// Outcome of a run that did not finish, as a sentence.
pub(crate) fn ending(r: &RunRecord) -> Option<String> {
    let why = r.error.as_deref().map(fmt::one_line);
    if r.status == Status::NotApplicable {
        return Some(why.unwrap_or_else(|| "cannot exist".into()));
    }
    let (_, how) = end(r.status)?;
    let why = why.map(|e| format!(": {e}")).unwrap_or_default();
    let s = &r.summary;
    Some(format!("died at step {}/{} ({how}{why})", s.steps_completed, s.steps_total))
}

/// Integrity failures by rule, in capitals as a warning.
pub(crate) fn integrity_note(r: &RunRecord) -> Option<String> {
    let n = r.broken_rules();
    if n == 0 {
        return None;
    }
    let rules: BTreeSet<Rule> = r.integrity.iter().map(|f| f.rule).collect();
    let rules = if rules.is_empty() {
        String::new()
    } else {
        format!(": {}", rules.iter().map(Rule::to_string).collect::<Vec<_>>().join(", "))
    };
    Some(format!("INTEGRITY FAILURES {n}{rules}"))
}

/// Remarks of a row, the most serious first.
pub(crate) fn notes(r: &RunRecord) -> Vec<String> {
    let mut out: Vec<String> = integrity_note(r).into_iter().chain(ending(r)).collect();
    match r.strategy.standing {
        Standing::Hypothetical => out.push("hypothetical: unlimited window".into()),
        Standing::Control => out.push("control, not a product".into()),
        Standing::Recorded => out.push("what really happened, by the provider's counters".into()),
        Standing::Contender => {}
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
        out.push(format!("a person stepped in {}×", s.user_interventions));
    }
    out
}

/// Outcomes of the background summaries, unless all were in time.
fn races(all: &[BackgroundRecord]) -> Option<String> {
    let phrase = |fate| match fate {
        Fate::InTime => "in time",
        Fate::LateWaited => "late and waited for",
        Fate::LateProceeded => "late, gone on without",
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

/// Failures to report before any score: broken rules of any row, and products that did not finish.
pub(crate) fn failures(block: &ReportBlock<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for r in &block.runs {
        // One line per rule and row, with the number and the first case in full.
        for broken in grouped(&r.integrity, |f| f.rule) {
            let first = broken[0];
            let times = match broken.len() {
                1 => String::new(),
                n => format!(" ×{n}, first"),
            };
            out.push(format!(
                "{}: INTEGRITY FAILURE: {}{times} at request {}: {}",
                r.strategy.label,
                first.rule,
                first.request,
                fmt::one_line(&first.detail)
            ));
        }
        if r.integrity.is_empty() && r.broken_rules() > 0 {
            let (label, n) = (&r.strategy.label, r.broken_rules());
            out.push(format!("{label}: INTEGRITY FAILURES, {n} of them"));
        }
    }
    for r in block.runs.iter().filter(|r| r.is_contender()) {
        out.extend(ending(r).map(|e| format!("{}: {e}", r.strategy.label)));
    }
    out
}

/// `modelled: …`: names of the modelled figures, or their parameters.
pub(crate) fn modelled(results: &Results, parameters: bool) -> String {
    let part = |(name, value): (&String, &String)| {
        // Prompt sizes are not a parameter of a model.
        if parameters || name == yardstick::MEMORY {
            format!("{} = {}", fmt::one_line(name), fmt::one_line(value))
        } else {
            fmt::one_line(name)
        }
    };
    let counted = |name: &str| !parameters && name.starts_with(yardstick::TOKENS);
    let named = results.assumptions.iter().filter(|(name, _)| !counted(name));
    let mut parts: Vec<String> = named.map(part).collect();
    // All other figures depend on the token counts, so their error is always stated.
    let mut counts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, how) in results.assumptions.iter().filter(|(name, _)| counted(name)) {
        counts.entry(how).or_default().push(fmt::one_line(&name[yardstick::TOKENS.len()..]));
    }
    parts.extend(counts.into_iter().map(|(how, models)| {
        format!("{}{} = {}", yardstick::TOKENS, models.join(", "), fmt::one_line(how))
    }));
    match parameters {
        _ if parts.is_empty() => "modelled: not stated in these results".into(),
        true => format!("modelled: {}", parts.join("; ")),
        false => format!("modelled: {} (all parameters in index.html)", parts.join("; ")),
    }
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
