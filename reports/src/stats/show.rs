//! Formats differences, for all reports.

use crate::record::Results;

use super::figures::{Scale, format_change};
use super::verdict::MIN_SESSIONS;
use super::{Differences, Figure, StrategyDifference, Verdict, judged};
use crate::fmt;
use crate::metrics::Metric;
use crate::sheet::{Group, Sheet};

/// Help text of the section.
pub(crate) const HELP: &str = "strategy against baseline, session by session, over those that both \
    finished without a broken rule: the mean change, its 95 % bootstrap interval (from eight \
    sessions) and the change of the session in the middle. Amounts change by a ratio, in per cent, \
    whose mean is the geometric one, so that a long session weighs no more than a short one; \
    `bill` is the change of the sum, which the longest decide. Shares change by points, and \
    so does, in its unit, what is 0 on one side. `compacted 3/21`: in 3 of the 21 sessions that \
    both finished. `a = b`: they sent the same requests. The words are a sign-flip test with \
    Holm's correction over the strategies, from ten recordings in which the strategy compacted; \
    no change: less than half a per cent or half a point, or at most a cent in all. \
    Strategies are deterministic: both speak about the choice of sessions only, and sessions that \
    resemble each other count as if they did not";

/// Title of a table.
pub(crate) fn heading(d: &Differences) -> String {
    let baseline = fmt::one_line(&d.baseline);
    format!("Differences from {baseline}, mean change per session, {}", fmt::one_line(&d.model))
}

/// Verdicts that the number of sessions allows, and the heaviest sessions.
pub(crate) fn caption(d: &Differences) -> String {
    let told = heaviest(d).filter(|_| d.sessions > 1).map(|told| format!("; heaviest: {told}"));
    allowed(d) + &told.unwrap_or_default()
}

/// Verdicts that the number of sessions allows.
fn allowed(d: &Differences) -> String {
    let n = d.sessions;
    let told = match n {
        0 | 1 => ": nothing to average, no intervals, no verdicts",
        _ if d.has_verdicts() => {
            "; BETTER, WORSE: beyond chance (sign-flip test, Holm, 5 %); UNRESOLVED: these \
             sessions do not decide"
        }
        n if n < MIN_SESSIONS => ": differences only",
        _ => ": differences only; nobody compacted in ten recordings",
    };
    fmt::sessions(n) + told
}

/// Heaviest sessions, with their shares.
pub(crate) fn heaviest(d: &Differences) -> Option<String> {
    let of = match d.heaviest.first()?.column {
        "cost_usd" => "dollars",
        _ => "tokens",
    };
    let one =
        |h: &super::Heavy| format!("{} {} %", fmt::one_line(&h.session), fmt::pct(h.share_pct));
    let named: Vec<String> = d.heaviest.iter().map(one).collect();
    Some(format!("{} of {}'s {of}", named.join(", "), fmt::one_line(&d.baseline)))
}

impl Differences {
    /// Returns true if any strategy could be judged.
    pub(crate) fn has_verdicts(&self) -> bool {
        self.strategies.iter().flat_map(|s| &s.figures).any(|f| f.p.is_some())
    }
}

/// Name of the strategy. Lists the names of all strategies that sent the same requests.
pub(crate) fn name(row: &StrategyDifference) -> String {
    let all: Vec<String> =
        std::iter::once(&row.strategy).chain(&row.same).map(|s| fmt::one_line(s)).collect();
    all.join(" = ")
}

/// Text for a change of nothing.
pub(crate) const NO_CHANGE: &str = "no change";

/// Label of a verdict; empty for a difference only.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "BETTER",
        Verdict::Worse => "WORSE",
        Verdict::Unresolved => "UNRESOLVED",
        Verdict::Equal => NO_CHANGE,
        Verdict::DifferenceOnly => "",
    }
}

/// Mean change with sign and unit.
pub(crate) fn change(figure: &Figure, metric: &Metric) -> String {
    fmt::known(figure.mean, |x| format_change(figure, metric, x))
}

/// Difference between two rows, from their mean changes against one baseline, which also determine
/// their order; `None` if it is unknown.
pub(crate) fn apart(from: &Figure, to: &Figure, metric: &Metric) -> Option<String> {
    Some(match is_apart_by_nothing(from, to, metric) {
        true => NO_CHANGE.into(),
        false => format_change(to, metric, between(from, to)?),
    })
}

/// Returns true if the difference between two rows is known and too small to matter.
pub(crate) fn is_apart_by_nothing(from: &Figure, to: &Figure, metric: &Metric) -> bool {
    between(from, to).is_some_and(|change| to.is_nothing(metric, change, from.own_mean))
}

/// Returns the difference between two rows in the scale of their changes; `None` if it is unknown.
fn between(from: &Figure, to: &Figure) -> Option<f64> {
    let (a, b) = (from.mean?, to.mean?);
    let between = match to.scale {
        Scale::Ratio => ((100.0 + b) / (100.0 + a) - 1.0) * 100.0,
        Scale::Difference => b - a,
    };
    between.is_finite().then_some(between)
}

/// Median change per session.
pub(crate) fn median(figure: &Figure, metric: &Metric) -> String {
    fmt::known(figure.median, |x| format_change(figure, metric, x))
}

/// Change of the sum, per cent; `None` unless the figure is a ratio over several sessions.
pub(crate) fn bill(figure: &Figure) -> Option<String> {
    let (own, base) = (figure.own_mean?, figure.base_mean.filter(|b| *b > 0.0)?);
    let pct = || fmt::signed((own / base - 1.0) * 100.0, fmt::pct);
    (figure.scale == Scale::Ratio && figure.sessions > 1).then(|| format!("{} %", pct()))
}

/// Mean change with its interval, if there is one.
pub(crate) fn change_within(figure: &Figure, metric: &Metric) -> String {
    let interval = interval(figure, metric).map(|i| format!(" {i}")).unwrap_or_default();
    change(figure, metric) + &interval
}

/// The figure itself for a single session; for several, its change with the interval.
pub(crate) fn position(d: &Differences, figure: &Figure, metric: &Metric) -> String {
    match d.sessions {
        1 => fmt::known(figure.own_mean, |x| metric.unit.describe(x)),
        _ => change_within(figure, metric),
    }
}

/// Interval, if there is one.
pub(crate) fn interval(figure: &Figure, metric: &Metric) -> Option<String> {
    figure.interval.map(|i| {
        format!(
            "[{}, {}]",
            format_change(figure, metric, i.low),
            format_change(figure, metric, i.high)
        )
    })
}

/// Table of the mean changes and the verdicts.
pub(crate) fn sheet(d: &Differences) -> Sheet {
    let mut head = vec!["strategy".to_string(), "compacted".into()];
    head.extend(judged().map(|m| m.name.to_string()));
    let cell = |(f, m): (&Figure, &Metric)| {
        format!("{} {}", change(f, m), word(f.verdict)).trim_end().to_string()
    };
    let row = |row: &StrategyDifference| {
        let figures = row.figures.iter().zip(judged()).map(cell);
        [name(row), describe_exposure(row)].into_iter().chain(figures).collect()
    };
    let rows = d.strategies.iter().map(row).collect();
    Sheet {
        title: heading(d),
        note: format!("{}. Intervals and medians: see index.html.", caption(d)),
        head,
        groups: vec![Group { name: String::new(), rows }],
    }
}

/// All data of a figure in one cell.
pub(crate) fn cell(figure: &Figure, metric: &Metric) -> String {
    if figure.sessions == 0 {
        return "n/a".into();
    }
    if figure.verdict == Verdict::Equal {
        return word(figure.verdict).into();
    }
    let parts = [
        Some(change(figure, metric)),
        interval(figure, metric),
        Some(format!("median {}", median(figure, metric))),
        bill(figure).map(|b| format!("bill {b}")),
        Some(word(figure.verdict).into()),
    ];
    parts.into_iter().flatten().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Number of sessions in which the strategy compacted, out of those that it and the baseline
/// finished.
pub(crate) fn describe_exposure(row: &StrategyDifference) -> String {
    format!("{}/{}", row.compacted, row.sessions)
}

/// Reason for a missing table, if there are several sessions.
pub(crate) fn missing(results: &Results, found: &[Differences]) -> Option<&'static str> {
    let mut recorded = results.runs.iter().filter(|r| r.scenario.recorded);
    let first = recorded.next()?;
    let several = recorded.any(|r| r.scenario.id != first.scenario.id);
    (several && found.is_empty()).then_some(
        "Differences over sessions are taken from `reference`, which is not part of these results.",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Heavy;
    use super::*;

    fn figure(scale: Scale, mean: f64) -> Figure {
        Figure {
            column: "cost_usd",
            scale,
            sessions: 3,
            compacted: 1,
            base_mean: Some(34.0),
            own_mean: Some(51.0),
            mean: Some(mean),
            median: Some(-50.0),
            interval: None,
            p: None,
            p_holm: None,
            verdict: Verdict::DifferenceOnly,
        }
    }

    fn row(same: &[&str], p: Option<f64>) -> StrategyDifference {
        StrategyDifference {
            strategy: "codex".into(),
            same: same.iter().map(ToString::to_string).collect(),
            sessions: 21,
            compacted: 3,
            figures: vec![Figure { p, ..figure(Scale::Ratio, -37.0) }],
        }
    }

    #[test]
    fn a_cell_tells_typical_session_and_bill() {
        let metric = |column| judged().find(|m| m.column == column).unwrap();
        let cost = cell(&figure(Scale::Ratio, -37.0), metric("cost_usd"));
        assert_eq!(cost, "−37.0 % median −50.0 % bill +50.0 %");
        let told = |column| change(&figure(Scale::Difference, -2_500.0), metric(column));
        assert_eq!([told("blocked_ms"), told("cost_usd")], ["−2.5 s", "−2500.0 $"]);
        let kept = figure(Scale::Difference, -2.5);
        assert_eq!(
            (change(&kept, metric("recall_pct")), bill(&kept)),
            ("−2.5 points".into(), None)
        );
        assert_eq!(change(&figure(Scale::Ratio, 0.0), metric("cost_usd")), "±0");
        let both = row(&["zeta"], None);
        assert_eq!((name(&both), describe_exposure(&both)), ("codex = zeta".into(), "3/21".into()));
    }

    #[test]
    fn a_caption_says_what_the_sessions_allow() {
        let of = |sessions, p| Differences {
            model: "m".into(),
            baseline: "reference".into(),
            sessions,
            heaviest: vec![],
            strategies: vec![row(&[], p)],
        };
        assert_eq!(caption(&of(9, None)), "9 sessions: differences only");
        assert_eq!(
            caption(&of(21, None)),
            "21 sessions: differences only; nobody compacted in ten recordings"
        );
        assert!(caption(&of(21, Some(0.3))).starts_with("21 sessions; BETTER, WORSE: beyond"));
        let heavy = |session: &str, share_pct| Heavy {
            session: session.into(),
            column: "input_tokens",
            share_pct,
        };
        let heaviest = vec![heavy("a", 40.0), heavy("b", 30.04)];
        let heavy = Differences { heaviest, ..of(9, None) };
        let expected =
            "9 sessions: differences only; heaviest: a 40.0 %, b 30.0 % of reference's tokens";
        assert_eq!(caption(&heavy), expected);
    }
}
