//! Goals: which strategy reaches the figures that somebody wants, session by session.

mod read;

use crate::metrics::{self, Cell, Metric, ToCell};
use crate::record::{About, Goal, Results, RunRecord, Status};
use crate::sections::Section;
use crate::sheet::{Group, Sheet};
use crate::{fmt, seeds, view};

pub use read::{DOCUMENTS, documents, read};

/// Most goals beside each other, so that a table of them fits a terminal.
const BESIDE: usize = 6;

const NOTE: &str = "Pass or fail with the figure that was measured, n/a = the row has no such \
    figure, so that nothing is said. A run that did not finish (full, quit, loop) or broke a rule \
    (broken) passes no goal: its figure measures less than the session.";

/// Whether a row reaches a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Fail,
    /// The row has no such figure.
    Na,
}

/// A row held to a goal.
pub(crate) struct Judged<'a> {
    pub(crate) goal: &'a Goal,
    /// In the unit of the column.
    pub(crate) value: Option<f64>,
    pub(crate) verdict: Verdict,
    /// Why it fails whatever its figure: how the run ended.
    pub(crate) ended: Option<&'static str>,
}

impl ToCell for Verdict {
    fn cell(&self) -> Cell {
        match self {
            Verdict::Pass => "pass".cell(),
            Verdict::Fail => "fail".cell(),
            Verdict::Na => Cell::Na,
        }
    }
}

/// How the products of some results stand to their goals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Pairs of a row and a goal that pass.
    pub passed: usize,
    /// A line for each that fails.
    pub failed: Vec<String>,
    /// Goals that are about no session of the results, by name.
    pub without_session: Vec<String>,
}

/// Holds every product to the goals of the results.
pub fn standing(results: &Results) -> Standing {
    let results = &*seeds::averaged(results);
    let mut standing =
        Standing { without_session: without_session(results), ..Standing::default() };
    for run in results.runs.iter().filter(|r| r.is_contender()) {
        for j in judged(run, &results.goals) {
            match j.verdict {
                Verdict::Pass => standing.passed += 1,
                Verdict::Fail => standing.failed.push(format!(
                    "{} × {}: goal “{}” is missed: {} {} wanted, {}",
                    fmt::one_line(&run.scenario.id),
                    fmt::one_line(&run.strategy.label),
                    fmt::one_line(&j.goal.name),
                    j.goal.metric,
                    bound(j.goal),
                    j.measured()
                )),
                // Of a run that broke off a missing figure says nothing good.
                Verdict::Na => {
                    standing.failed.extend(j.ended.filter(|_| broke_off(run)).map(|how| {
                        format!(
                            "{} × {}: goal “{}”: no figure, since the run ended as {how}",
                            fmt::one_line(&run.scenario.id),
                            fmt::one_line(&run.strategy.label),
                            fmt::one_line(&j.goal.name)
                        )
                    }))
                }
            }
        }
    }
    standing
}

fn broke_off(run: &RunRecord) -> bool {
    matches!(run.status, Status::Overflow | Status::Failed | Status::Livelock)
}

/// A row held to every goal that is about its session.
pub(crate) fn judged<'a>(run: &RunRecord, goals: &'a [Goal]) -> Vec<Judged<'a>> {
    let about = |g: &&Goal| is_about(g, run);
    goals.iter().filter(about).map(|goal| judge(run, goal)).collect()
}

fn is_about(goal: &Goal, run: &RunRecord) -> bool {
    match &goal.about {
        About::Scenario(id) => run.scenario.id == *id,
        About::Tag(tag) => run.scenario.tags.contains(tag),
        About::Every => true,
    }
}

fn judge<'a>(run: &RunRecord, goal: &'a Goal) -> Judged<'a> {
    let measured = run.status != Status::Error;
    let value = metric(goal).and_then(|m| m.value(run)).filter(|_| measured);
    let ended = match view::end(run.status) {
        Some((word, _)) => Some(word),
        None if run.broken_rules() > 0 => Some("broken"),
        None => None,
    };
    let verdict = match value {
        None => Verdict::Na,
        Some(x) if ended.is_none() && goal.is.holds(x, goal.bound) => Verdict::Pass,
        Some(_) => Verdict::Fail,
    };
    Judged { goal, value, verdict, ended }
}

/// `None` for a name that this version does not know: results may be of another.
fn metric(goal: &Goal) -> Option<&'static Metric> {
    metrics::find(&goal.metric).ok()
}

/// The bound as people read it, with its sign: `< 5 s`.
fn bound(goal: &Goal) -> String {
    let (figure, unit) = match metric(goal) {
        Some(m) => (m.unit.converted(goal.bound), m.unit.suffix()),
        None => (goal.bound, ""),
    };
    format!("{} {}{unit}", goal.is.sign(), fmt::exact(figure))
}

impl Judged<'_> {
    /// The sessions that the goal is about, in a word.
    pub(crate) fn about(&self) -> String {
        match &self.goal.about {
            About::Scenario(id) => format!("scenario {id}"),
            About::Tag(tag) => format!("tag {tag}"),
            About::Every => "every session".into(),
        }
    }

    /// Unit of the column.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        metric(self.goal).map(|m| m.unit.name())
    }

    /// A cell: `pass 3.2`, `fail full`, `n/a`.
    fn text(&self) -> String {
        let shown = || match (self.value, metric(self.goal)) {
            (Some(x), Some(m)) => m.unit.show(x),
            _ => String::new(),
        };
        match (self.verdict, self.ended) {
            (Verdict::Na, _) => "n/a".into(),
            (Verdict::Pass, _) => format!("pass {}", shown()),
            (Verdict::Fail, None) => format!("fail {}", shown()),
            (Verdict::Fail, Some(how)) => format!("fail {how}"),
        }
    }

    /// The figure within a sentence.
    fn measured(&self) -> String {
        let said =
            |m: &Metric| self.value.map(|x| format!("{}{}", m.unit.show(x), m.unit.suffix()));
        let figure = metric(self.goal).and_then(said).unwrap_or_default();
        match self.ended {
            Some(how) => format!("{figure} measured, and the run did not go well: {how}"),
            None => format!("{figure} measured"),
        }
    }
}

/// Goals that are about no session of the results.
fn without_session(results: &Results) -> Vec<String> {
    let lonely = |g: &&Goal| !results.runs.iter().any(|r| is_about(g, r));
    results.goals.iter().filter(lonely).map(|g| fmt::one_line(&g.name)).collect()
}

/// A sheet for the goals about the same sessions, a row per strategy.
pub(crate) fn sheets(results: &Results) -> Vec<Section<'static>> {
    let mut abouts: Vec<&About> = Vec::new();
    for goal in &results.goals {
        if !abouts.contains(&&goal.about) {
            abouts.push(&goal.about);
        }
    }
    let mut sheets: Vec<Sheet> = Vec::new();
    for about in abouts {
        let goals: Vec<Goal> =
            results.goals.iter().filter(|g| g.about == *about).cloned().collect();
        for goals in goals.chunks(BESIDE) {
            sheets.extend(sheet(results, about, goals));
        }
    }
    let missing = without_session(results);
    if let Some(last) = sheets.last_mut() {
        last.note += &format!(" {NOTE}");
        if !missing.is_empty() {
            let names = missing.join(", ");
            last.note +=
                &format!(" Not judged, since no session here is what they are about: {names}.");
        }
    }
    sheets.into_iter().map(Section::Sheet).collect()
}

fn sheet(results: &Results, about: &About, goals: &[Goal]) -> Option<Sheet> {
    let mut groups = Vec::new();
    for block in view::blocks(results) {
        let rows: Vec<Vec<String>> = block
            .runs
            .iter()
            .map(|run| (run, judged(run, goals)))
            .filter(|(_, judged)| !judged.is_empty())
            .map(|(run, judged)| row(run, &judged))
            .collect();
        if !rows.is_empty() {
            groups.push(Group { name: block.name(), rows });
        }
    }
    let head = |g: &Goal| format!("{}\n{}", broken(&fmt::one_line(&g.name)), bound(g));
    let says = |g: &Goal| {
        format!(
            "{}: {} ({}, {})",
            fmt::one_line(&g.name),
            fmt::one_line(g.says.trim_end_matches('.')),
            g.metric,
            fmt::one_line(&g.link)
        )
    };
    let note = goals.iter().map(says).collect::<Vec<_>>().join("; ");
    (!groups.is_empty()).then(|| Sheet {
        title: match about {
            About::Scenario(id) => format!("Goals on {}", fmt::one_line(id)),
            About::Tag(tag) => format!("Goals on sessions tagged {}", fmt::one_line(tag)),
            About::Every => "Goals".into(),
        },
        note: note + ".",
        head: std::iter::once("strategy".into())
            .chain(goals.iter().map(head))
            .chain(["passed".into()])
            .collect(),
        groups,
    })
}

fn row(run: &RunRecord, judged: &[Judged<'_>]) -> Vec<String> {
    let count = |v: Verdict| judged.iter().filter(|j| j.verdict == v).count();
    let (passed, failed) = (count(Verdict::Pass), count(Verdict::Fail));
    let mut row = vec![run.strategy.label.clone()];
    row.extend(judged.iter().map(Judged::text));
    row.push(format!("{passed}/{}", passed + failed));
    row
}

/// Two lines of a heading, broken at the blank nearest to the middle.
fn broken(name: &str) -> String {
    let middle = name.len() / 2;
    let blanks = name.match_indices(' ').map(|(i, _)| i);
    match blanks.min_by_key(|i| i.abs_diff(middle)) {
        Some(at) => format!("{}\n{}", &name[..at], &name[at + 1..]),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests;
