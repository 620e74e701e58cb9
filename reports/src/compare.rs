//! Compares two results per scenario, strategy and model, the largest change first. Over several
//! sessions it also reports the change per session of each strategy, and from ten recordings on a
//! verdict.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::record::{Results, RunRecord, yardstick};

use crate::metrics::{self, Metric, Unit};
use crate::stats::{self, Differences, StrategyDifference, Verdict};
use crate::{fmt, grid, markdown, view};

type Rows = Vec<Vec<String>>;

const HEAD: [&str; 5] = ["scenario × strategy", "figure", "base", "new", "change"];
const FIGURES: Range<usize> = 2..5;

const SESSION_HEAD: [&str; 7] =
    ["strategy", "figure", "sessions", "mean change", "of the sum", "95 % interval", "verdict"];
const SESSION_FIGURES: Range<usize> = 2..6;

/// Differences between two results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Rows that differ, the largest change first.
    pub rows: Vec<RowDiff>,
    /// Number of rows with equal figures.
    pub unchanged: usize,
    /// Rows only in the base: scenario × strategy × model.
    pub only_base: Vec<String>,
    /// Rows only in the new results.
    pub only_new: Vec<String>,
    /// Obstacles to a comparison, such as other assumptions.
    pub remarks: Vec<String>,
    /// Each strategy against itself over the sessions of both results, per model.
    pub over_sessions: Vec<Differences>,
}

/// One row of both results.
#[derive(Clone, Debug, PartialEq)]
pub struct RowDiff {
    pub scenario: String,
    /// Strategy label.
    pub strategy: String,
    pub model: String,
    /// Figures that differ, the outcome first: name, base, new, change.
    pub figures: Vec<[String; 4]>,
    /// Sort weight of the row.
    pub weight: f64,
}

/// Compares row by row.
pub fn compare(base: &Results, new: &Results) -> Comparison {
    let (base, new) = (&*view::told_apart(base), &*view::told_apart(new));
    let (old_rows, new_rows) = (index(base), index(new));
    let name = |k: &Key<'_>| view::name(k.0, k.1, k.2, true);
    let mut out = Comparison {
        only_base: old_rows.keys().filter(|k| !new_rows.contains_key(*k)).map(name).collect(),
        only_new: new_rows.keys().filter(|k| !old_rows.contains_key(*k)).map(name).collect(),
        remarks: remarks(base, new),
        over_sessions: stats::between(base, new),
        ..Comparison::default()
    };
    for (key, b) in &old_rows {
        let Some(n) = new_rows.get(key) else { continue };
        match diff(b, n) {
            Some(row) => out.rows.push(row),
            None => out.unchanged += 1,
        }
    }
    out.rows.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    out
}

type Key<'a> = (&'a str, &'a str, &'a str);

fn index(results: &Results) -> BTreeMap<Key<'_>, &RunRecord> {
    results
        .runs
        .iter()
        .map(|r| ((r.scenario.id.as_str(), r.strategy.label.as_str(), r.model.as_str()), r))
        .collect()
}

fn remarks(base: &Results, new: &Results) -> Vec<String> {
    let changes = yardstick::changes(&base.assumptions, &new.assumptions);
    let mut out: Vec<String> =
        changes.map(|(name, change)| format!("assumption {name}: {change}")).collect();
    if base.generator != new.generator {
        let (base, new) = (fmt::one_line(&base.generator), fmt::one_line(&new.generator));
        out.push(format!("made by {base} → {new}"));
    }
    out
}

fn diff(base: &RunRecord, new: &RunRecord) -> Option<RowDiff> {
    let mut row = RowDiff {
        scenario: base.scenario.id.clone(),
        strategy: base.strategy.label.clone(),
        model: base.model.clone(),
        figures: Vec::new(),
        weight: 0.0,
    };
    if base.status != new.status {
        let words = [base.status.word(), new.status.word()].map(str::to_string);
        row.weight += 1e5;
        row.figures.push(["status".into(), words[0].clone(), words[1].clone(), String::new()]);
    }
    for (m, per_unit) in metrics::sorted_columns(|m| &m.compared) {
        let (b, n) = (m.value(base), m.value(new));
        if b.map(fmt::exact) == n.map(fmt::exact) {
            continue;
        }
        row.weight += match (b, n) {
            (Some(b), Some(n)) if m.unit.is_relative() => moved(b, n) * per_unit,
            (Some(b), Some(n)) => (n - b).abs() * per_unit,
            _ => 100.0,
        };
        row.figures.push(figure(m, b, n));
    }
    (!row.figures.is_empty()).then_some(row)
}

/// Name of a figure, its two values, and the change.
fn figure(m: &Metric, base: Option<f64>, new: Option<f64>) -> [String; 4] {
    // Milliseconds are compared in the unit of the column.
    let millis = m.unit == Unit::Millis;
    let show = |x: f64| if millis { fmt::count(x) } else { m.unit.format_value(x) };
    let name = if millis { format!("{} ms", m.name) } else { m.heading() };
    let change = match (base, new) {
        (Some(b), Some(n)) if m.unit.is_relative() && b != 0.0 => {
            format!("{} %", fmt::signed(percent(b, n), fmt::pct))
        }
        (Some(b), Some(n)) => fmt::signed(n - b, show),
        _ => String::new(),
    };
    let text = |x: Option<f64>| fmt::known(x, show);
    [name, text(base), text(new), change]
}

fn percent(base: f64, new: f64) -> f64 {
    (new - base) / base * 100.0
}

/// Weight of a change in per cent. It is bounded, so that a single figure does not decide the
/// order.
fn moved(base: f64, new: f64) -> f64 {
    if base == 0.0 { 100.0 } else { percent(base, new).abs().min(1000.0) }
}

impl Comparison {
    /// Formats the differences as text for a terminal, or as Markdown for a pull request.
    pub fn to_text(&self, markdown: bool) -> String {
        let mut out = String::from(if markdown { "## Changes\n\n" } else { "" });
        if !self.rows.is_empty() {
            write_rows(&mut out, markdown, &HEAD, FIGURES, self.lines());
        }
        let sessions = self.session_lines();
        if !sessions.is_empty() {
            out.push_str(if markdown { "### Over sessions\n\n" } else { "\n" });
            write_rows(&mut out, markdown, &SESSION_HEAD, SESSION_FIGURES, sessions);
        }
        for line in self.tail() {
            let line = if markdown { format!("- {}", markdown::text(&line)) } else { line };
            out.push_str(&line);
            out.push('\n');
        }
        out
    }

    /// One line per strategy and figure that changed in any session.
    fn session_lines(&self) -> Rows {
        let several = self.over_sessions.iter().filter(|d| !d.strategies.is_empty()).count() > 1;
        let mut out = Vec::new();
        for d in &self.over_sessions {
            for row in &d.strategies {
                let mut name = stats::name(row);
                if several {
                    name += &format!(" × {}", fmt::one_line(&d.model));
                }
                let changed = row
                    .figures
                    .iter()
                    .zip(stats::judged())
                    .filter(|(f, _)| f.sessions > 0 && f.verdict != Verdict::Equal);
                out.extend(changed.map(|(f, m)| {
                    vec![
                        name.clone(),
                        m.name.into(),
                        format!("{}/{}", f.sessions, d.sessions),
                        stats::change(f, m),
                        stats::bill(f).unwrap_or_default(),
                        stats::interval(f, m).unwrap_or_default(),
                        stats::word(f.verdict).into(),
                    ]
                }));
            }
        }
        out
    }

    /// One line per figure that differs; only the first one of a row names the row.
    fn lines(&self) -> Rows {
        let first = self.rows.first().map(|r| &r.model);
        let several = self.rows.iter().any(|r| Some(&r.model) != first);
        let mut out = Vec::new();
        for row in &self.rows {
            let mut name = view::name(&row.scenario, &row.strategy, &row.model, several);
            for cells in &row.figures {
                let name = std::mem::take(&mut name);
                out.push(std::iter::once(name).chain(cells.iter().cloned()).collect());
            }
        }
        out
    }

    fn tail(&self) -> Vec<String> {
        let mut out: Vec<String> =
            self.only_base.iter().map(|n| format!("only in base: {n}")).collect();
        out.extend(self.only_new.iter().map(|n| format!("only in new: {n}")));
        out.extend(self.remarks.iter().cloned());
        let (empty, told): (Vec<_>, Vec<_>) =
            self.over_sessions.iter().partition(|d| d.strategies.is_empty());
        let alike = |s: &&StrategyDifference| s.figures.iter().all(|f| f.verdict == Verdict::Equal);
        out.extend(told.into_iter().map(|d| {
            let equal: usize = d.strategies.iter().filter(alike).map(|s| 1 + s.same.len()).sum();
            let caption = stats::caption(d);
            let strategies = fmt::pluralize(equal, "strategy");
            format!("{}, {caption}; {strategies} with no change", d.model)
        }));
        out.extend(empty.into_iter().map(|d| format!("{}, {}", d.model, stats::caption(d))));
        let differ = if self.rows.len() == 1 { "differs" } else { "differ" };
        let are = if self.unchanged == 1 { "is" } else { "are" };
        let rows = fmt::pluralize(self.rows.len(), "row");
        out.push(format!("{rows} {differ}, {} {are} unchanged", self.unchanged));
        out
    }
}

fn write_rows(out: &mut String, markdown: bool, head: &[&str], figures: Range<usize>, rows: Rows) {
    let is_figure = |i: usize| figures.contains(&i);
    if markdown {
        let rows = rows.iter().map(|r| r.iter().map(|c| markdown::text(c)).collect());
        out.push_str(&grid::markdown(head, rows, is_figure));
        out.push('\n');
        return;
    }
    let last = head.len() - 1;
    let padding = |i| (1, if i < last { 2 } else { 1 });
    let head = head.iter().map(ToString::to_string).collect();
    let lines = grid::draw(head, rows, is_figure, padding);
    lines.iter().for_each(|l| out.push_str(&format!("{l}\n")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn alike_results_have_no_differences() {
        let c = compare(&testing::results(), &testing::results());
        assert_eq!(c.to_text(false), "0 rows differ, 12 are unchanged\n");
    }

    #[test]
    fn the_weightiest_change_comes_first() {
        let mut new = testing::results();
        new.runs[0].summary.cost_usd *= 1.02;
        new.runs[2].summary.recall_pct = Some(10.0);
        new.runs[3].summary.integrity_failures = 1;
        new.runs[4].summary.saved_pct = None;
        new.runs.retain(|r| r.strategy.label != "openoxide");
        new.runs.push(testing::run("other", "codex", 3));
        let c = compare(&testing::results(), &new);
        let order: Vec<&str> = c.rows.iter().map(|r| r.strategy.as_str()).collect();
        assert_eq!(order, ["codex", "codex:auto_compact_limit=90000", "claude-code", "aider"]);
        assert_eq!((c.only_base.len(), c.only_new.len(), c.unchanged), (1, 1, 7));
        let text = c.to_text(false);
        testing::assert_contains(&text, &["+2.0 %", "only in base: login-bug × openoxide"]);
        assert!(c.to_text(true).contains("| tokens saved % |"));
    }

    #[test]
    fn a_change_in_per_cent_is_the_true_one_and_from_nothing_there_is_none() {
        let (mut old, mut new) = (testing::results(), testing::results());
        old.runs[0].summary.cost_usd = 0.06;
        new.runs[0].summary.cost_usd = 4.482;
        old.runs[1].summary.cost_usd = 0.0;
        new.runs[1].summary.cost_usd = 0.5;
        let c = compare(&old, &new);
        let changes: Vec<&[String; 4]> = c.rows.iter().flat_map(|r| &r.figures).collect();
        // 4.482 is 74.7 times 0.06.
        assert_eq!(changes[0][3], "+7370.0 %");
        assert_eq!(changes[1][3], "+0.500");
    }

    #[test]
    fn results_without_a_session_in_common_say_so() {
        let (old, mut new) = (testing::recordings(1), testing::recordings(1));
        new.runs.iter_mut().for_each(|r| r.scenario.id = "other".into());
        let text = compare(&old, &new).to_text(false);
        assert!(text.contains(", 0 sessions: nothing to average"), "{text}");
    }

    #[test]
    fn over_ten_sessions_a_strategy_is_better_or_worse_than_it_was() {
        let old = testing::recordings(10);
        let mut new = old.clone();
        for (i, r) in testing::labelled(&mut new, "codex").enumerate() {
            r.summary.recall_pct = r.summary.recall_pct.map(|x| x - 1.0 - i as f64);
            r.summary.blocked_ms += if i % 2 == 0 { 1_000 + i as u64 } else { 0 };
        }
        let c = compare(&old, &new);
        let text = c.to_text(false);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_start)
            .filter(|l| l.starts_with("codex ") && l.contains("10/10"))
            .collect();
        // Losses of 1 to 10 points: −5.5, all of one sign.
        let kept = lines.iter().find(|l| l.contains("recall")).unwrap();
        assert!(kept.contains("−5.5 points") && kept.ends_with("WORSE"), "{text}");
        // Five of ten rose: 2 · 2⁻⁵ = 0.06.
        assert!(lines.iter().any(|l| l.contains("waited") && l.ends_with("UNRESOLVED")), "{text}");
        assert_eq!(lines.len(), 2, "{text}");
        testing::assert_contains(&text, &["10 sessions; BETTER, WORSE"]);
        let row = "| codex | recall | 10/10 | −5.5 points |";
        testing::assert_contains(&c.to_text(true), &[row]);
    }

    #[test]
    fn one_row_that_differs_is_singular() {
        let mut new = testing::results();
        new.runs[0].summary.cost_usd *= 2.0;
        let text = compare(&testing::results(), &new).to_text(false);
        assert!(text.contains("\n1 row differs, 11 are unchanged"), "{text}");
    }

    #[test]
    fn other_assumptions_are_told() {
        let mut new = testing::results();
        new.assumptions.insert("summariser".into(), "ideal".into());
        let text = compare(&testing::results(), &new).to_text(false);
        assert!(text.contains("assumption summariser: extractive → ideal"), "{text}");
    }
}
