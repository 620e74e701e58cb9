//! Compares a real agent with our implementation of it, on the session as the agent ran it. The
//! conclusion of a drive reports this agreement.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use ctxbench_core::request::Purpose;

use crate::fmt;
use crate::record::{
    Agreement, Counterpart, RequestRecord, RequestStatus, RunRecord, Two, TwoFigures, TwoRequests,
};
use crate::sheet::{ByBlock, Column, cells, heads};
use crate::view::ReportBlock;

/// Tolerated difference of two prompts, as a share of the larger one.
const SAME: f64 = 0.005;

const REQUESTS: &str = "requests";
/// Names of figures ([`TwoFigures::what`]).
const PEAK: &str = "largest prompt, tokens";
const INPUT: &str = "input, tokens";
const COST: &str = "cost, USD";
const KEPT_ROW: &str = "recall, %";

pub fn compared(real: &RunRecord, ours: &RunRecord) -> Agreement {
    let figure = |what: &str, of: fn(&RunRecord) -> Option<f64>| TwoFigures {
        what: what.into(),
        real: of(real),
        ours: of(ours),
    };
    let asked = |r: &RunRecord| {
        let summary = answered(r).enumerate().filter(|(_, q)| q.purpose == Purpose::Summary);
        summary.map(|(i, _)| i as u64 + 1).collect::<Vec<_>>()
    };
    Agreement {
        figures: vec![
            figure(REQUESTS, |r| Some(answered(r).count() as f64)),
            figure("requests for summaries", |r| {
                Some(answered(r).filter(|q| q.purpose == Purpose::Summary).count() as f64)
            }),
            figure("compactions", |r| Some(r.summary.compactions as f64)),
            figure(PEAK, |r| Some(r.summary.peak_context_tokens as f64)),
            figure(INPUT, |r| Some(r.summary.input_tokens as f64)),
            figure("of it from the cache", |r| Some(r.summary.cache_read_tokens as f64)),
            figure("output, tokens", |r| Some(r.summary.output_tokens as f64)),
            figure(COST, |r| Some(r.summary.cost_usd)),
            figure(KEPT_ROW, |r| r.summary.recall_pct),
        ],
        summary_requests: Two { real: asked(real), ours: asked(ours) },
        first_difference: first_difference(real, ours),
    }
}

/// Requests that the provider answered. Refused requests are not part of a conversation: the row of
/// a real program contains them only if something follows from them, our row contains all of them.
fn answered(r: &RunRecord) -> impl Iterator<Item = &RequestRecord> {
    r.requests.iter().filter(|q| q.status == RequestStatus::Ok)
}

fn first_difference(real: &RunRecord, ours: &RunRecord) -> Option<TwoRequests> {
    let work = |r: &RunRecord| -> Vec<u64> {
        let own = |q: &&RequestRecord| q.purpose == Purpose::Sample;
        answered(r).filter(own).map(|q| q.input_tokens).collect()
    };
    let (real, ours) = (work(real), work(ours));
    (0..real.len().max(ours.len())).find_map(|i| {
        let (a, b) = (real.get(i).copied(), ours.get(i).copied());
        let same = match (a, b) {
            (Some(a), Some(b)) => a.abs_diff(b) as f64 <= SAME * a.max(b) as f64,
            _ => false,
        };
        (!same).then_some(TwoRequests { request: i + 1, real_tokens: a, our_tokens: b })
    })
}

impl TwoFigures {
    /// Deviation of our figure from the real one, per cent; `None` if the real one is 0 or unknown.
    pub fn difference_pct(&self) -> Option<f64> {
        let (real, ours) = self.real.zip(self.ours)?;
        (real != 0.0).then(|| 100.0 * (ours / real - 1.0))
    }
}

impl Agreement {
    /// Describes the difference in a sentence.
    pub fn sentence(&self, real: &str) -> String {
        told_of(real, &[self])
    }

    fn figure(&self, what: &str) -> Option<&TwoFigures> {
        self.figures.iter().find(|f| f.what == what)
    }

    /// Deviation of our implementation in a figure, per cent.
    fn off(&self, what: &str) -> Option<f64> {
        self.figure(what)?.difference_pct()
    }

    /// Compares the numbers of the summary requests; `None` if neither row made one.
    fn same_summaries(&self) -> Option<bool> {
        let Two { real, ours } = &self.summary_requests;
        (!real.is_empty() || !ours.is_empty()).then_some(real == ours)
    }

    /// Requests in which our implementation asks for summaries, for display.
    fn our_summaries(&self) -> String {
        match self.same_summaries() {
            Some(true) => "the same".into(),
            _ => numbers(&self.summary_requests.ours),
        }
    }

    /// Deviation of our implementation in a figure, for display.
    fn format(&self, what: &str) -> String {
        fmt::known(self.off(what), percent)
    }
}

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Our implementations beside the real programs",
    note: "Each on the session as the program lived it. Differences are those of ours from the \
        program; the first request of its own that differs does so by more than 0.5 % of its \
        tokens, or only one of the two made it. n/a: one of them did not come to the end.",
    head: || iter::once("real").chain(heads(COLUMNS)).collect(),
    told: |_| None,
    rows: |r| r.beside.iter().map(row).collect(),
};

/// Columns after the real row.
const COLUMNS: &[Column<Agreement>] = &[
    ("requests\nreal / ours", |a| both(a, REQUESTS, 0)),
    ("input", |a| a.format(INPUT)),
    ("cost", |a| a.format(COST)),
    ("first that\ndiffers", |a| {
        a.first_difference.as_ref().map_or("none".into(), |d| d.request.to_string())
    }),
    ("largest\nprompt", |a| a.format(PEAK)),
    ("recall %\nreal / ours", |a| both(a, KEPT_ROW, 1)),
    // Last, since a narrow table leaves out its last columns.
    ("our\nsummaries", Agreement::our_summaries),
    ("summaries\nat request", |a| numbers(&a.summary_requests.real)),
];

fn both(agreement: &Agreement, what: &str, digits: usize) -> String {
    let one = |x: Option<f64>| fmt::known(x, |x| format!("{x:.digits$}"));
    fmt::known(agreement.figure(what), |f| format!("{} / {}", one(f.real), one(f.ours)))
}

fn row(beside: &Counterpart) -> Vec<String> {
    let cells = match &beside.agreement {
        Some(agreement) => cells(COLUMNS, agreement),
        None => vec!["n/a".into(); COLUMNS.len()],
    };
    iter::once(beside.row.clone()).chain(cells).collect()
}

/// Adds the label of the real row to our labels that would otherwise be equal, because every report
/// identifies a row by its label.
pub fn tell_apart(rows: &mut [&mut RunRecord]) {
    let mut pairs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for r in rows.iter() {
        let real = r.beside.iter().map(|b| b.row.clone());
        pairs.entry(r.strategy.label.clone()).or_default().extend(real);
    }
    for r in rows {
        let label = &mut r.strategy.label;
        if let Some(beside) = r.beside.as_ref().filter(|_| pairs[label].len() > 1) {
            label.push_str(&implementation_label(&beside.row));
        }
    }
}

fn implementation_label(real: &str) -> String {
    format!(" beside {real}")
}

/// Formats a difference in per cent.
pub fn percent(x: f64) -> String {
    format!("{} %", fmt::signed(x, |x| format!("{x:.2}")))
}

/// Length from which on a list of request numbers is only counted.
const LONG: usize = 9;

/// Formats a list of request numbers.
fn numbers(all: &[u64]) -> String {
    match all {
        [] => "none".to_string(),
        [first, .., last] if all.len() >= LONG => {
            format!("{} from {first} to {last}", all.len())
        }
        all => all.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Conclusions on agreement: one sentence per pair of our implementation and the real program, over
/// all sessions.
pub(crate) fn sentences(blocks: &[&ReportBlock<'_>]) -> Vec<String> {
    let mut pairs: BTreeMap<(&str, &str), Vec<Option<&Agreement>>> = BTreeMap::new();
    for r in blocks.iter().flat_map(|b| &b.runs) {
        if let Some(beside) = &r.beside {
            let label = &*r.strategy.label;
            let pair = (
                label.strip_suffix(&implementation_label(&beside.row)).unwrap_or(label),
                &*beside.row,
            );
            pairs.entry(pair).or_default().push(beside.agreement.as_ref());
        }
    }
    let told = |((ours, real), all): ((&str, &str), Vec<Option<&Agreement>>)| {
        let held: Vec<&Agreement> = all.iter().flatten().copied().collect();
        let (ours, real) = (fmt::one_line(ours), fmt::one_line(real));
        let mut text = format!("{ours} {}", told_of(&real, &held));
        if held.len() < all.len() {
            let (n, of) = (all.len() - held.len(), all.len());
            let sessions = if of == 1 { "the session".into() } else { format!("{n} of {of}") };
            text += &format!("; not held together in {sessions}: one of them did not finish");
        }
        text + "."
    };
    pairs.into_iter().map(told).collect()
}

/// Deviation of our implementation from a real row, over the sessions that both finished.
fn told_of(real: &str, held: &[&Agreement]) -> String {
    let n = held.len();
    if n == 0 {
        return format!("against {real}: nothing to compare");
    }
    let figure = |said: &str, what: &str| {
        let off: Vec<f64> = held.iter().filter_map(|a| a.off(what)).collect();
        let (least, most) =
            (off.iter().copied().reduce(f64::min)?, off.iter().copied().reduce(f64::max)?);
        let (least, most) = (percent(least), percent(most));
        Some(if least == most {
            format!("{said} {least}")
        } else {
            format!("{said} {least} to {most}")
        })
    };
    let counted = |same: usize, yes: &str, no: &str| match (n, same) {
        (1, 1) => yes.to_string(),
        (1, _) => no.to_string(),
        _ => format!("{yes} in {same} of {n} sessions"),
    };
    let asked: Vec<bool> = held.iter().filter_map(|a| a.same_summaries()).collect();
    let same = asked.iter().filter(|same| **same).count();
    let summaries = match asked.len() {
        0 => "neither asks for a summary".to_string(),
        all if all < n => format!(
            "the same requests ask for summaries in {same} of {all} sessions in which any does"
        ),
        _ => {
            counted(same, "the same requests ask for summaries", "other requests ask for summaries")
        }
    };
    let alike = held.iter().filter(|a| a.first_difference.is_none()).count();
    let first = held.iter().find_map(|a| a.first_difference.as_ref());
    let differs = first.map_or(String::new(), |d| {
        format!("request {} of its own is the first that differs", d.request)
    });
    let parts = [figure("input", INPUT), figure("cost", COST)]
        .into_iter()
        .flatten()
        .chain([summaries, counted(alike, "no request differs by more than 0.5 %", &differs)]);
    format!("against {real}: {}", parts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing, view};
    use ctxbench_core::request::ErrorKind;

    /// Run with requests of these sizes; request `summary`, from 0, asks for a summary.
    fn run(session: &str, label: &str, tokens: &[u64], summary: usize) -> RunRecord {
        let mut r = testing::run(session, label, 1);
        let request = r.requests[0].clone();
        let asked = |(i, n): (usize, &u64)| RequestRecord {
            seq: i as u64,
            purpose: if i == summary { Purpose::Summary } else { Purpose::Sample },
            input_tokens: *n,
            ..request.clone()
        };
        r.requests = tokens.iter().enumerate().map(asked).collect();
        r.summary.input_tokens = tokens.iter().sum();
        r.summary.cost_usd = 2.0;
        r
    }

    fn sample_pair(
        session: &str,
        real: &[u64],
        ours: &[u64],
        at: (usize, usize),
    ) -> [RunRecord; 2] {
        let real = run(session, "real-codex", real, at.0);
        let mut ours = run(session, "codex", ours, at.1);
        let agreement = Some(compared(&real, &ours));
        ours.beside = Some(Counterpart { row: "real-codex".into(), agreement });
        [real, ours]
    }

    fn told_by(runs: Vec<RunRecord>) -> Vec<String> {
        let results = testing::of(runs);
        sentences(&view::blocks(&results).iter().collect::<Vec<_>>())
    }

    #[test]
    fn one_session_is_told_with_its_first_difference() {
        // 1005 is within 0.5 % of 1000, 1006 is not.
        let same = sample_pair("one", &[1000, 1000, 500], &[1000, 1005, 500], (2, 2));
        // 2505 ÷ 2500 = 1.002.
        let want = "codex against real-codex: input +0.20 %, cost ±0 %, the same \
                    requests ask for summaries, no request differs by more than 0.5 %.";
        assert_eq!(told_by(same.to_vec()), [want]);
        let other = sample_pair("one", &[1000, 1000, 500], &[1000, 1006, 494], (2, 0));
        let want = "codex against real-codex: input ±0 %, cost ±0 %, other \
                    requests ask for summaries, request 1 of its own is the first that differs.";
        assert_eq!(told_by(other.to_vec()), [want]);
    }

    #[test]
    fn requests_that_were_refused_are_held_against_nothing() {
        let real = run("one", "real-codex", &[1000, 1200, 500], 2);
        let mut ours = run("one", "codex", &[1000, 0, 1200, 500], 3);
        ours.requests[1].status = RequestStatus::Failed(ErrorKind::Server);
        let agreement = compared(&real, &ours);
        assert_eq!(agreement.first_difference, None);
        assert_eq!((agreement.summary_requests.real, agreement.summary_requests.ours), {
            (vec![3], vec![3])
        });
        let of = |what: &str| {
            let figure = agreement.figures.iter().find(|f| f.what == what).unwrap();
            (figure.real, figure.ours)
        };
        assert_eq!(of(REQUESTS), (Some(3.0), Some(3.0)));
        assert_eq!(of("requests for summaries"), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn summaries_that_nobody_asked_for_are_not_the_same_ones() {
        let none = sample_pair("one", &[1000, 1000], &[1000, 1000], (9, 9));
        let agreement = none[1].beside.as_ref().and_then(|b| b.agreement.as_ref()).unwrap();
        assert_eq!(agreement.our_summaries(), "none");
        let told = told_by(none.to_vec()).concat();
        assert!(told.contains("cost ±0 %, neither asks for a summary, no request"), "{told}");
        let two = sample_pair("two", &[1000, 1000], &[1000, 1000], (1, 1));
        let three = sample_pair("three", &[1000, 1000], &[1000, 1000], (1, 0));
        let told = told_by([none, two, three].concat()).concat();
        let want = "the same requests ask for summaries in 1 of 2 sessions in which any does";
        assert!(told.contains(want), "{told}");
    }

    #[test]
    fn several_sessions_are_told_together_and_what_could_not_be_held_is_named() {
        let one = sample_pair("one", &[1000, 1000], &[1000, 1000], (1, 1));
        let two = sample_pair("two", &[1000, 1000], &[1000, 1100], (1, 0));
        let mut three = sample_pair("three", &[1000], &[1000], (0, 0));
        three[1].beside.as_mut().unwrap().agreement = None;
        let told = told_by([one, two, three].concat());
        // 2100 ÷ 2000.
        let want = "codex against real-codex: input ±0 % to +5.00 %, cost ±0 %, \
                    the same requests ask for summaries in 1 of 2 sessions, no request \
                    differs by more than 0.5 % in 1 of 2 sessions; not held together in 1 of 3: \
                    one of them did not finish.";
        assert_eq!(told, [want]);
    }

    #[test]
    fn rows_of_one_label_are_told_apart_by_what_they_stand_beside() {
        let labels = |of_second: &str| {
            let [one, two] = ["one", "two"].map(|s| sample_pair(s, &[1000], &[1000], (0, 0)));
            let mut three = sample_pair("one", &[1000], &[1000], (0, 0));
            three[1].beside.as_mut().unwrap().row = of_second.into();
            let mut all = [one, two, three].concat();
            tell_apart(&mut all.iter_mut().collect::<Vec<_>>());
            let told = told_by(all.clone());
            (all.into_iter().map(|r| r.strategy.label).collect::<Vec<_>>(), told)
        };
        let (same, _) = labels("real-codex");
        assert_eq!(same, ["real-codex", "codex"].repeat(3));
        let (other, told) = labels("real-mine");
        let codex = ["real-codex", "codex beside real-codex"];
        assert_eq!(other[..4], codex.repeat(2));
        assert_eq!(other[4..], ["real-codex", "codex beside real-mine"]);
        assert!(told[0].starts_with("codex against real-codex: "), "{told:?}");
        assert!(told[1].starts_with("codex against real-mine: "), "{told:?}");
    }

    #[test]
    fn the_second_row_of_a_product_competes_with_nobody() {
        let [real, ours] = sample_pair("one", &[1000, 1000], &[1000, 1000], (1, 1));
        assert!(real.is_contender() && !ours.is_contender() && !ours.can_win());
    }
}
