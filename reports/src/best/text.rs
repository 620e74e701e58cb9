//! The answer for a terminal.

use std::fmt::Write as _;

use comfy_table::Cell;

use super::{Answer, Asked, Elsewhere, Row, Verdict};
use crate::metrics::{self, Metric, Unit};
use crate::table::wrap;
use crate::{fmt, grid};

/// Width of sentences, columns.
const WIDTH: usize = 100;

/// More rows than this are counted, not shown; `--json` has all.
const SHOWN: usize = 20;

/// A sentence that answers, what it is worth on other sessions, the rows, and who was left out.
pub fn text(answers: &[Answer]) -> String {
    answers.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(a: &Answer) -> String {
    let by = metric(a.by);
    let conditions: Vec<String> = a.conditions.iter().map(condition).collect();
    let with = if a.conditions.is_empty() {
        String::new()
    } else {
        format!(" with {}", conditions.join(" and "))
    };
    let mut out = format!(
        "Best by {}{with}: {}, {}, {} recorded\n\n",
        a.by,
        a.about,
        fmt::sessions(a.sessions),
        a.recordings
    );
    // Writing to a string never fails.
    let mut lines = wrap(&verdict(a), WIDTH, "");
    lines.extend(a.elsewhere.iter().flat_map(|e| wrap(&elsewhere(a, e, by), WIDTH, "")));
    if !a.rows.is_empty() {
        lines.push(String::new());
        lines.extend(table(a, by));
    }
    if !a.set_aside.is_empty() {
        lines.extend([String::new(), "Not among them:".into()]);
        let told = |s: &super::SetAside| {
            format!("{}: {}", fmt::one_line(&s.strategy), fmt::one_line(&s.why))
        };
        lines.extend(a.set_aside.iter().flat_map(|s| wrap(&told(s), WIDTH, "  ")));
    }
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn metric(column: &str) -> &'static Metric {
    metrics::find(column).expect("a column of the question is one of the metrics")
}

fn unit(column: &str) -> Unit {
    metric(column).unit
}

fn condition(c: &Asked) -> String {
    let sign = if c.at_least { "≥" } else { "≤" };
    format!("{} {sign} {}", c.metric, unit(c.metric).say(c.bound))
}

fn name(row: &Row) -> String {
    let all = std::iter::once(&row.strategy).chain(&row.same);
    all.map(|s| fmt::one_line(s)).collect::<Vec<_>>().join(" = ")
}

fn halves(a: &Answer, row: &Row) -> String {
    format!("{} % of {} random halves", fmt::pct(row.chosen_pct), a.halves)
}

fn verdict(a: &Answer) -> String {
    match (&a.verdict, a.rows.first()) {
        (Verdict::Decided, Some(row)) => {
            format!("{} is best: {} choose it.", name(row), halves(a, row))
        }
        (Verdict::Undecided { why }, Some(row)) => {
            let candidates: Vec<&Row> = a.rows.iter().filter(|r| r.is_candidate()).collect();
            let others = candidates.iter().skip(1);
            let others: Vec<String> =
                others.map(|r| format!("{} ({} %)", name(r), fmt::pct(r.chosen_pct))).collect();
            match (a.halves, others.is_empty()) {
                (0, _) => format!("Undecided: {why}."),
                (_, true) => {
                    format!("Undecided: {why}. {} choose {}.", halves(a, row), name(row))
                }
                (_, false) => format!(
                    "Undecided: {why}. {} choose {}, others {}.",
                    halves(a, row),
                    name(row),
                    others.join(", ")
                ),
            }
        }
        (Verdict::NoneFits, Some(_)) => {
            let nearest: Vec<String> =
                a.conditions.iter().enumerate().map(|(i, c)| nearest(a, i, c)).collect();
            format!("No row meets that over all sessions. {}.", nearest.join("; "))
        }
        _ => "There is no row to choose from.".into(),
    }
}

/// Who comes nearest to a condition.
fn nearest(a: &Answer, i: usize, c: &Asked) -> String {
    let known = a.rows.iter().filter_map(|r| Some((r.values[i]?, r)));
    let side = |x: &f64| if c.at_least { -x } else { *x };
    let first = known.min_by(|(x, _), (y, _)| side(x).total_cmp(&side(y)));
    let Some((x, row)) = first else { return format!("No row has {}", c.metric) };
    let most = if c.at_least { "most" } else { "least" };
    format!("{} has the {most} {}, {}", name(row), c.metric, unit(c.metric).say(x))
}

fn elsewhere(a: &Answer, e: &Elsewhere, by: &Metric) -> String {
    let mean = if e.relative { " a session (geometric mean)" } else { " a session" };
    let mut out =
        format!("On the other halves what was chosen has {} {}{mean}", a.by, by.unit.say(e.by));
    if !a.conditions.is_empty() {
        let _ = write!(out, " and meets the condition in {} %", fmt::pct(e.held_pct));
    }
    out.push('.');
    if a.none_pct > 0.0 {
        let _ = write!(out, " On {} % of the halves no row met it.", fmt::pct(a.none_pct));
    }
    if let (Some(mean), Some(most)) = (e.regret_mean, e.regret_p95) {
        let told = |x: f64| {
            if e.relative {
                format!("{} %", fmt::pct(x))
            } else {
                format!("{}{}", by.unit.show(x), by.unit.of_change())
            }
        };
        let _ = write!(
            out,
            " The price of being wrong: {} worse there than the best one on average, {} in one \
             half of twenty.",
            told(mean),
            told(most)
        );
    }
    out
}

fn table(a: &Answer, by: &Metric) -> Vec<String> {
    let mut head = vec!["strategy".to_string(), "chosen %".into(), a.by.into()];
    head.extend(a.conditions.iter().map(|c| c.metric.to_string()));
    if !a.conditions.is_empty() {
        head.push("meets all".into());
    }
    let cell = |i: usize, text: &String| {
        if i == 0 { Cell::new(text) } else { grid::figure(text) }
    };
    let row = |r: &Row| {
        let mut cells = vec![name(r), fmt::pct(r.chosen_pct), by.unit.say(r.by)];
        let values = r.values.iter().zip(&a.conditions);
        cells.extend(values.map(|(v, c)| v.map_or("n/a".into(), |x| unit(c.metric).say(x))));
        if !a.conditions.is_empty() {
            cells.push(if r.fits { "yes".into() } else { "no".to_string() });
        }
        cells.iter().enumerate().map(|(i, text)| cell(i, text)).collect()
    };
    let head = head.iter().enumerate().map(|(i, text)| cell(i, text)).collect();
    let mut lines = grid::draw(head, a.rows.iter().take(SHOWN).map(row), |_| (0, 2));
    if a.rows.len() > SHOWN {
        lines.push(format!("and {} more; --json has all", a.rows.len() - SHOWN));
    }
    lines
}
