//! A real agent beside our implementation of it, on the session as the agent lived it.

use ctxbench_core::request::Purpose;
use ctxbench_reports::record::{RequestRecord, RunRecord};

/// Two rows of one session.
#[derive(Debug)]
pub struct Beside {
    /// What is held together, the real figure, ours.
    pub figures: Vec<(&'static str, f64, f64)>,
    /// Numbers of the requests, among all that are sent, that ask for a summary: real, ours.
    pub compactions: (Vec<u64>, Vec<u64>),
    /// The first request of the agent's own that differs by more than one in two hundred tokens, or
    /// that only one of the two made: its number from 1, real tokens, our tokens.
    pub first_difference: Option<(usize, Option<u64>, Option<u64>)>,
}

/// Of two prompts, this share may differ before they are told apart.
const SAME: f64 = 0.005;

/// Holds a real row and ours together.
pub fn compared(real: &RunRecord, ours: &RunRecord) -> Beside {
    let figure = |name, of: fn(&RunRecord) -> f64| (name, of(real), of(ours));
    let asked = |r: &RunRecord| {
        let all = r.requests.iter().enumerate();
        let summary = all.filter(|(_, q)| q.purpose == Purpose::Summary);
        summary.map(|(i, _)| i as u64 + 1).collect::<Vec<_>>()
    };
    Beside {
        figures: vec![
            figure("requests", |r| r.summary.requests as f64),
            figure("requests for summaries", |r| r.summary.summary_calls as f64),
            figure("compactions", |r| r.summary.compactions as f64),
            figure("largest prompt, tokens", |r| r.summary.peak_context_tokens as f64),
            figure("input, tokens", |r| r.summary.input_tokens as f64),
            figure("of it from the cache", |r| r.summary.cache_read_tokens as f64),
            figure("output, tokens", |r| r.summary.output_tokens as f64),
            figure("cost, USD", |r| r.summary.cost_usd),
            figure("needs kept, %", |r| r.summary.needs_kept_pct.unwrap_or(f64::NAN)),
        ],
        compactions: (asked(real), asked(ours)),
        first_difference: first_difference(real, ours),
    }
}

fn first_difference(
    real: &RunRecord,
    ours: &RunRecord,
) -> Option<(usize, Option<u64>, Option<u64>)> {
    let work = |r: &RunRecord| -> Vec<u64> {
        let own = |q: &&RequestRecord| q.purpose == Purpose::Sample;
        r.requests.iter().filter(own).map(|q| q.input_tokens).collect()
    };
    let (real, ours) = (work(real), work(ours));
    (0..real.len().max(ours.len())).find_map(|i| {
        let (a, b) = (real.get(i).copied(), ours.get(i).copied());
        let same = match (a, b) {
            (Some(a), Some(b)) => a.abs_diff(b) as f64 <= SAME * a.max(b) as f64,
            _ => false,
        };
        (!same).then_some((i + 1, a, b))
    })
}

impl Beside {
    /// The difference in a sentence.
    pub fn sentence(&self, real: &str) -> String {
        let figure = |name: &str| {
            let (_, real, ours) = self.figures.iter().find(|(n, ..)| *n == name)?;
            Some(format!("{name} {:+.2} %", Beside::difference_pct(*real, *ours)?))
        };
        let mut parts: Vec<String> =
            ["input, tokens", "cost, USD"].into_iter().filter_map(figure).collect();
        let (theirs, ours) = &self.compactions;
        parts.push(match theirs == ours {
            true => "the same requests ask for summaries".into(),
            false => "other requests ask for summaries".into(),
        });
        parts.push(match &self.first_difference {
            None => "no request differs by more than 0.5 %".into(),
            Some((n, ..)) => format!("request {n} of its own is the first that differs"),
        });
        format!("against {real}: {}", parts.join(", "))
    }

    /// How far ours is from the real figure, per cent; `None` where the real one is nothing.
    pub fn difference_pct(real: f64, ours: f64) -> Option<f64> {
        let whole = real.is_finite() && ours.is_finite() && real != 0.0;
        whole.then(|| 100.0 * (ours / real - 1.0))
    }
}
