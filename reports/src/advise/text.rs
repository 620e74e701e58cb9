//! Parts of the advice for one product, in order, and their form on a terminal of 80 columns.

use super::{
    Advice, Candidate, ChangeOutcome, Comparable, LeftOut, SessionFigures, SettingChange, Sums,
    percent,
};
use crate::record::Recall;
use crate::stats::Verdict;
use crate::table::wrap;
use crate::{fmt, front, grid};

const WIDTH: usize = 80;

/// Maximum width of the name of a row, characters.
const NAME: usize = 26;

/// Number of omitted sessions that are listed without details.
const LISTED: usize = 3;

/// A part of the advice.
pub(super) enum Part {
    Heading(String),
    Text(String),
    /// A line to copy.
    Code(String),
    /// Head and rows; all columns but the first have figures.
    Table(&'static [&'static str], Vec<Vec<String>>),
    List(Vec<String>),
}

use Part::{Code, Heading, List, Table, Text};

/// Formats the advice for one product: decision, table, cautions. `in_full` adds the sessions one by
/// one, the omitted ones, and all limits.
pub fn to_text(a: &Advice, in_full: bool) -> String {
    lines(decision(a).into_iter().chain(evidence(a, in_full)))
}

/// Formats the decision for one product, with the line to write, or with a reason why no session can
/// be used.
pub fn to_summary(a: &Advice) -> String {
    lines(decision(a).into_iter().chain(left_out(a, usize::from(a.sessions == 0))))
}

fn lines(parts: impl Iterator<Item = Part>) -> String {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Heading(text) => out.extend([String::new(), text]),
            Text(text) => out.extend(wrap(&text, WIDTH, "")),
            Code(text) => out.push(format!("      {text}")),
            Table(head, rows) => {
                let head = head.iter().map(|h| h.to_string()).collect();
                out.extend(grid::draw(head, rows, |i| i > 0, |i| (u16::from(i > 0), 0)));
            }
            List(all) => {
                out.extend(all.iter().flat_map(|t| wrap(&format!("  {t}"), WIDTH, "    ")))
            }
        }
    }
    out.join("\n") + "\n"
}

/// The decision, and the line to write with its place.
pub(super) fn decision(a: &Advice) -> Vec<Part> {
    let mut out = vec![Text(a.sentence.clone())];
    let Some(advised) = a.advised() else { return out };
    out.push(Text(a.sure.clone()));
    for s in &advised.change.settings {
        out.push(Text(format!("Write in {} ({}):", s.place, s.documented)));
        out.push(Code(s.line.clone()));
    }
    out.push(Text("Later, check on new sessions that it took effect:".into()));
    out.push(Code(format!("ctxbench advise --product {}", advised.change.label)));
    out
}

/// The table, cautions, and with `in_full` what they are based on.
pub(super) fn evidence(a: &Advice, in_full: bool) -> Vec<Part> {
    let mut out = Vec::new();
    if a.sessions > 0 {
        out.extend([Heading(scope(a)), Table(&HEAD, rows(a)), List(notes(a))]);
    }
    let most = if in_full { a.limits.len() } else { 1 + usize::from(a.advised().is_some()) };
    let limits = a.limits.iter().take(most).filter(|_| a.sessions > 0).chain([&a.effect]);
    let cautions: Vec<String> = limits.filter(|text| !text.is_empty()).cloned().collect();
    if !cautions.is_empty() {
        out.extend([Heading("Caution".into()), List(cautions)]);
    }
    if let Some((then, focus)) =
        a.focus().and_then(|o| Some((o.then.as_ref()?, o))).filter(|_| in_full)
    {
        out.push(Heading(format!("Each session today, then with {}", assignments(focus))));
        out.extend([Table(&SESSION_HEAD, by_session(&a.now, then)), List(accuracy(a))]);
    }
    let listed = if in_full { a.left_out.len() } else { LISTED };
    out.into_iter().chain(left_out(a, listed)).collect()
}

/// The first omitted sessions, with the reasons.
fn left_out(a: &Advice, most: usize) -> Vec<Part> {
    let reason = |l: &LeftOut| format!("{}: {}", fmt::one_line(&l.session), fmt::one_line(&l.why));
    let reasons: Vec<String> = a.left_out.iter().take(most).map(reason).collect();
    let heading = format!("Left out: {}", fmt::sessions(a.left_out.len()));
    if reasons.is_empty() { vec![] } else { vec![Heading(heading), List(reasons)] }
}

/// One line with the compared sessions.
pub(super) fn scope(a: &Advice) -> String {
    let models: String = a.models.iter().map(|m| format!(", {}", fmt::one_line(m))).collect();
    let left_out = match a.left_out.len() {
        0 => String::new(),
        n => format!(" ({n} more left out)"),
    };
    let (product, sessions) = (fmt::one_line(&a.product), fmt::sessions(a.sessions));
    format!("{product}, {sessions}{left_out}{models}")
}

/// Recorded figures and those of our replay.
fn accuracy(a: &Advice) -> Vec<String> {
    let figures = |c: &Comparable| {
        let cache = fmt::known(c.cache_read_pct, |pct| format!("{pct:.1} %"));
        let compactions = fmt::pluralize(c.compactions, "compaction");
        format!("${}, {compactions}, {cache} read from the cache", fmt::usd(c.cost_usd))
    };
    vec![
        format!("as recorded: {}", figures(&a.recorded)),
        format!("our replay: {}", figures(&a.modelled)),
    ]
}

const HEAD: [&str; 9] = ["", "at", "cost $", "change", "recall", "at risk", "wait s", "comp.", ""];

/// Today's settings, each value, and the combinations.
fn rows(a: &Advice) -> Vec<Vec<String>> {
    let sure = |o: &ChangeOutcome, i: usize| match o.figures[i].verdict {
        Verdict::Better | Verdict::Worse => "*",
        _ => " ",
    };
    let mark = |is_on_front: bool| is_on_front.then(|| front::MARK.to_string());
    let mut today = cells("today", &a.now, " ");
    today.extend(mark(a.front));
    let mut rows = vec![today];
    let mut first = None;
    for (o, then) in a.changes.iter().filter_map(|o| Some((o, o.then.as_ref()?))) {
        if o.change.extends.is_some() && first.is_none() {
            first = o.change.settings.first();
            let mut head = vec![String::new(); HEAD.len()];
            head[0] = first.map_or(String::new(), |s| format!("with {}:", assignment(s)));
            rows.push(head);
        }
        let mut cells = cells(&name(&o.change), then, sure(o, super::KEPT));
        cells[3] = percent(a.now.cost_usd, then.cost_usd) + sure(o, super::COST);
        cells.extend(mark(o.front));
        rows.push(cells);
    }
    rows.iter_mut().for_each(|row| row.resize(HEAD.len(), String::new()));
    rows
}

/// Cells of a row without its change and mark.
fn cells(name: &str, then: &Sums, sure: &str) -> Vec<String> {
    let at_risk = |r: Recall| fmt::known(r.pct, |pct| format!("{pct:.0} % of {}", r.events));
    vec![
        fmt::elide(name, NAME),
        compacts_at(then),
        fmt::usd(then.cost_usd),
        String::new(),
        fmt::known(then.recall.pct, fmt::pct) + sure,
        at_risk(then.at_risk),
        fmt::count(then.waited_ms as f64 / 1e3),
        then.compactions.to_string(),
    ]
}

/// Formats the median size of the prompt before a summary.
pub(super) fn compacts_at(sums: &Sums) -> String {
    fmt::known(sums.compacts_at, |n| fmt::tokens(n as f64))
}

fn assignment(s: &SettingChange) -> String {
    format!("{}={}", s.setting, short(&s.value))
}

fn assignments(o: &ChangeOutcome) -> String {
    o.change.settings.iter().map(assignment).collect::<Vec<_>>().join(" with ")
}

/// Shortens thousands: `150k`.
pub(super) fn short(value: &str) -> String {
    match value.parse::<u64>() {
        Ok(n) if n >= 10_000 && n % 1_000 == 0 => format!("{}k", n / 1_000),
        _ => fmt::one_line(value),
    }
}

/// Name of a row; of a combination, the value that is added.
fn name(c: &Candidate) -> String {
    match &c.settings[..] {
        [_, second] => format!("  {}", assignment(second)),
        all => all.iter().map(assignment).collect(),
    }
}

/// Legend of the table, and rows that cannot be advised.
fn notes(a: &Advice) -> Vec<String> {
    let listed = |is: fn(&ChangeOutcome) -> bool, show: fn(&ChangeOutcome) -> String| {
        let names: Vec<String> = a.changes.iter().filter(|o| is(o)).map(show).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let failed = listed(
        |o| o.failed > 0,
        |o| {
            let ranked = if o.then.is_some() { "" } else { "; not ranked" };
            format!("{} ({}{ranked})", assignments(o), fmt::sessions(o.failed))
        },
    );
    let unset = listed(|o| !o.is_settable(), assignments);
    let is_judged = a.changes.iter().flat_map(|o| &o.figures).any(|f| f.p.is_some());
    let marks = [
        (a.front || a.changes.iter().any(|o| o.front)).then_some(FRONT),
        is_judged.then_some("* beyond chance"),
    ];
    let marks: Vec<&str> = marks.into_iter().flatten().collect();
    let mut out = vec![RECALL.to_string(), marks.join("; ")];
    out.extend(failed.map(|names| format!("Not finished: {names}")));
    out.extend(unset.map(|names| format!("The product has no setting for: {names}")));
    out.retain(|text| !text.is_empty());
    out
}

const RECALL: &str = "at: tokens of the prompt before a summary, the median; recall: share, %, of what \
                      later messages need that the context still shows; at risk: of what compactions \
                      removed";
const FRONT: &str = "◆ nothing else in the table costs less and keeps more";

const SESSION_HEAD: [&str; 6] = ["session", "cost $", "then $", "change", "recall %", "then %"];

fn by_session(now: &Sums, then: &Sums) -> Vec<Vec<String>> {
    let recall = |pct: Option<f64>| fmt::known(pct, fmt::pct);
    let row = |(now, then): (&SessionFigures, &SessionFigures)| {
        vec![
            fmt::elide(&fmt::one_line(&now.session), NAME),
            fmt::usd(now.cost_usd),
            fmt::usd(then.cost_usd),
            percent(now.cost_usd, then.cost_usd),
            recall(now.recall_pct),
            recall(then.recall_pct),
        ]
    };
    now.per_session.iter().zip(&then.per_session).map(row).collect()
}
