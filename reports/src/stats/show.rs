//! How differences are told: the words that every report shares.

use crate::record::Results;

use super::verdict::MIN_SESSIONS;
use super::{Differences, Figure, StrategyDifference, Verdict};
use crate::fmt;
use crate::metrics::Metric;

/// What the section says, for a reader who meets it for the first time.
pub(crate) const HELP: &str = "mean of strategy − baseline over the sessions that both finished \
    without a broken rule, in brackets the change in per cent of the \
baseline's mean and the 95 % bootstrap interval of the mean (from eight sessions). The words are a \
sign-flip test with Holm's correction over the strategies \
(from ten sessions). Strategies are deterministic: both speak about the choice of sessions only, \
and sessions that resemble each other count as if they did not";

/// What a table is about, in one line.
pub(crate) fn heading(d: &Differences) -> String {
    format!(
        "Differences from {}, mean per session, {}",
        fmt::one_line(&d.baseline),
        fmt::one_line(&d.model)
    )
}

/// How much the sessions allow to be said.
pub(crate) fn caption(d: &Differences) -> String {
    match d.sessions {
        0 | 1 => format!("{} session: nothing to average, no intervals, no verdicts", d.sessions),
        n if n < MIN_SESSIONS => format!("{n} sessions: differences only"),
        n => format!(
            "{n} sessions; BETTER, WORSE: beyond chance (sign-flip test, Holm, 5 %); UNRESOLVED: \
             these sessions do not decide"
        ),
    }
}

/// The word of a verdict; empty where only the difference is told.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "BETTER",
        Verdict::Worse => "WORSE",
        Verdict::Unresolved => "UNRESOLVED",
        Verdict::Equal => "equal",
        Verdict::DifferenceOnly => "",
    }
}

/// The mean difference in the unit of the heading, signed.
pub(crate) fn change(figure: &Figure, metric: &Metric) -> String {
    figure.mean.map_or("n/a".into(), |x| fmt::signed(x, |x| metric.unit.show(x)))
}

/// The same in per cent of the baseline's mean, where that helps.
pub(crate) fn share(figure: &Figure, metric: &Metric) -> Option<String> {
    let (mean, base) = (figure.mean?, figure.base_mean.filter(|b| *b > 0.0)?);
    metric.unit.is_relative().then(|| format!("{} %", fmt::signed(mean / base * 100.0, fmt::pct)))
}

/// The interval, if there is one.
pub(crate) fn interval(figure: &Figure, metric: &Metric) -> Option<String> {
    figure.interval.map(|i| {
        let show = |x| fmt::signed(x, |x| metric.unit.show(x));
        format!("[{}, {}]", show(i.low), show(i.high))
    })
}

/// Everything about one figure in one cell.
pub(crate) fn cell(figure: &Figure, metric: &Metric) -> String {
    let share = share(figure, metric).map(|s| format!("({s})"));
    let parts = [
        Some(change(figure, metric)),
        share,
        interval(figure, metric),
        Some(word(figure.verdict).into()),
    ];
    parts.into_iter().flatten().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Usable sessions of those that there are.
pub(crate) fn seen(d: &Differences, row: &StrategyDifference) -> String {
    format!("{}/{}", row.figures.first().map_or(0, |f| f.sessions), d.sessions)
}

/// Why there is no table, although there are several sessions.
pub(crate) fn missing(results: &Results, found: &[Differences]) -> Option<&'static str> {
    let first = results.runs.first()?;
    let several = results.runs.iter().any(|r| r.scenario.id != first.scenario.id);
    (several && found.is_empty()).then_some(
        "Differences over sessions are taken from `reference`, which is not part of these results.",
    )
}
