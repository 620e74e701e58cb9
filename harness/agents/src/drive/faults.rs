//! Faults of the provider during a drive, by the number of the request among all requests, among
//! summaries, or among the agent's own requests.

use std::str::FromStr;

use ctxbench_scenarios::{FaultOn, ProviderFault};
use ctxbench_util::plural::pluralize;

use super::director::Director;
use crate::serve::{self, BadFault, FaultPlan};

/// A fault as on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveFault {
    spec: String,
    pub(super) kind: FaultKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Fault of the n-th request, counting side requests and retries: `3:429;retry-after=1`.
    Request(FaultPlan),
    /// Fault of the n-th summary or of the n-th own request: `summary:1:500`, `work:4-5:529`,
    /// `summary:1-3:empty`.
    Sort(ProviderFault),
}

impl FromStr for DriveFault {
    type Err = BadFault;

    fn from_str(spec: &str) -> Result<DriveFault, BadFault> {
        let sorts = [("summary:", FaultOn::Summary), ("work:", FaultOn::Sample)];
        let sort = sorts.iter().find_map(|(word, on)| Some((spec.strip_prefix(word)?, *on)));
        let kind = match sort {
            None => FaultKind::Request(spec.parse()?),
            Some((rest, on)) => FaultKind::Sort(of_sort(rest, on).ok_or_else(|| {
                BadFault(format!(
                    "fault `{spec}`: expected summary:N:FAULT or work:N:FAULT, where N is a number \
                     from 1 or a range such as 1-3, and FAULT is a status from 400 to 599, or `empty`"
                ))
            })?),
        };
        Ok(DriveFault { spec: spec.to_string(), kind })
    }
}

fn of_sort(spec: &str, on: FaultOn) -> Option<ProviderFault> {
    let (at, what) = spec.split_once(':')?;
    let (nth, last) = serve::request_numbers(at)?;
    let (status, text) = match what.trim() {
        "empty" => (None, Some(String::new())),
        status => (Some(status.parse().ok().filter(|s| (400..=599).contains(s))?), None),
    };
    Some(ProviderFault { times: last - nth + 1, status, text, ..ProviderFault::new(on, nth) })
}

/// Returns notes about faults that did not occur because the agent sent too few requests.
pub(super) fn unused_faults(all: &[DriveFault], sent: &Director) -> Vec<String> {
    let note = |DriveFault { spec, kind }: &DriveFault| {
        let (first, n, of_sort) = match kind {
            FaultKind::Request(plan) => (plan.from, sent.exchanges.len() as u64, ""),
            FaultKind::Sort(f) if f.on == FaultOn::Summary => {
                (f.nth, sent.counted(f.on), " for a summary")
            }
            FaultKind::Sort(f) => (f.nth, sent.counted(f.on), " for its work"),
        };
        let made = pluralize(n, "request");
        (first > n)
            .then(|| format!("the fault `{spec}` did not occur: the agent sent {made}{of_sort}"))
    };
    all.iter().filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_the_numbers_and_the_answer_of_a_fault() {
        for (spec, on, nth, times, status) in [
            ("summary:2-4:empty", FaultOn::Summary, 2, 3, None),
            ("work:3:529", FaultOn::Sample, 3, 1, Some(529)),
        ] {
            let fault: DriveFault = spec.parse().unwrap();
            let FaultKind::Sort(f) = fault.kind else { panic!("{spec}") };
            assert_eq!((f.on, f.nth, f.times, f.status), (on, nth, times, status), "{spec}");
            assert_eq!(f.text.is_some(), status.is_none(), "{spec}");
        }
        let plain: DriveFault = "3:429;retry-after=1".parse().unwrap();
        assert!(matches!(plain.kind, FaultKind::Request(plan) if plan.from == 3));
        for bad in ["summary:0:500", "summary:1:200", "summary:1", "work:2-1:500", "title:1:500"] {
            let told = bad.parse::<DriveFault>().unwrap_err().to_string();
            assert!(told.contains(bad) && told.contains("expected"), "{told}");
        }
    }
}
