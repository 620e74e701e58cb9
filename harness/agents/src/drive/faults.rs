//! Faults of the provider during a drive, by the number of the request among all requests, among
//! summaries, or among the agent's own requests.

use std::fmt;
use std::str::FromStr;

use ctxbench_scenarios::{FaultOn, ProviderFault};
use ctxbench_util::plural::pluralize;

use crate::serve::{self, BadFault, FaultPlan};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveFault {
    /// Fault of the n-th request, counting side requests and retries: `3:429;retry-after=1`.
    Request(FaultPlan),
    /// Fault of the n-th summary or of the n-th own request: `summary:1:500`, `work:4-5:529`,
    /// `summary:1-3:empty`.
    Sort(ProviderFault),
}

/// Syntax error in a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDriveFault {
    #[error("{0}")]
    Request(#[from] BadFault),
    #[error(
        "fault `{0}`: expected summary:N:FAULT or work:N:FAULT, where N is a number from 1 or a \
         range such as 1-3, and FAULT is a status from 400 to 599, or `empty`"
    )]
    Sort(String),
}

impl FromStr for DriveFault {
    type Err = BadDriveFault;

    fn from_str(spec: &str) -> Result<DriveFault, BadDriveFault> {
        let sorts = [("summary:", FaultOn::Summary), ("work:", FaultOn::Sample)];
        let sort = sorts.iter().find_map(|(word, on)| Some((spec.strip_prefix(word)?, *on)));
        match sort {
            None => Ok(DriveFault::Request(spec.parse()?)),
            Some((rest, on)) => {
                of_sort(rest, on).ok_or_else(|| BadDriveFault::Sort(spec.to_string()))
            }
        }
    }
}

fn of_sort(spec: &str, on: FaultOn) -> Option<DriveFault> {
    let (at, what) = spec.split_once(':')?;
    let (nth, last) = serve::request_numbers(at)?;
    let (status, text) = match what.trim() {
        "empty" => (None, Some(String::new())),
        status => (Some(status.parse().ok().filter(|s| (400..=599).contains(s))?), None),
    };
    let times = last - nth + 1;
    Some(DriveFault::Sort(ProviderFault { times, status, text, ..ProviderFault::new(on, nth) }))
}

/// Returns notes about faults that did not occur because the agent sent too few requests.
pub(super) fn unused_faults(all: &[DriveFault], made: RequestCounts) -> Vec<String> {
    let told = |fault: &DriveFault| {
        let (from, n, of_sort) = match fault {
            DriveFault::Request(plan) => (plan.from(), made.all, ""),
            DriveFault::Sort(f) if f.on == FaultOn::Summary => {
                (f.nth, made.summaries, " for a summary")
            }
            DriveFault::Sort(f) => (f.nth, made.work, " for its work"),
        };
        let made = pluralize(n, "request");
        (from > n)
            .then(|| format!("the fault `{fault}` did not occur: the agent sent {made}{of_sort}"))
    };
    all.iter().filter_map(told).collect()
}

/// Number of requests of an agent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCounts {
    pub(super) all: u64,
    pub(super) summaries: u64,
    pub(super) work: u64,
}

/// Formats a fault as on the command line.
impl fmt::Display for DriveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self {
            DriveFault::Request(plan) => return plan.fmt(f),
            DriveFault::Sort(fault) => fault,
        };
        let ProviderFault { on, nth, times, status, text, tokens, .. } = fault;
        let sort = if *on == FaultOn::Summary { "summary" } else { "work" };
        let range = if *times > 1 { format!("-{}", nth + times - 1) } else { String::new() };
        write!(f, "{sort}:{nth}{range}:")?;
        match (status, tokens, text.as_deref()) {
            (Some(status), ..) => status.fmt(f),
            (None, Some(tokens), _) => write!(f, "a reply of {tokens} tokens"),
            (None, None, None | Some("")) => f.write_str("empty"),
            (None, None, Some(_)) => f.write_str("another text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_faults_of_requests_that_were_not_sent_are_reported() {
        let all = ["9:500", "8:500", "summary:1:500", "work:7-9:empty"];
        let all = all.map(|spec| spec.parse::<DriveFault>().unwrap());
        let told = unused_faults(&all, RequestCounts { all: 8, summaries: 0, work: 1 });
        assert_eq!(
            told,
            [
                "the fault `9:500` did not occur: the agent sent 8 requests",
                "the fault `summary:1:500` did not occur: the agent sent 0 requests for a summary",
                "the fault `work:7-9:empty` did not occur: the agent sent 1 request for its work",
            ]
        );
    }

    #[test]
    fn parse_fault_round_trips() {
        let Ok(DriveFault::Sort(f)) = "summary:2-4:empty".parse() else { panic!("not read") };
        assert_eq!((f.on, f.nth, f.times, f.status), (FaultOn::Summary, 2, 3, None));
        assert_eq!(f.text.as_deref(), Some(""));
        let Ok(DriveFault::Sort(f)) = "work:3:529".parse() else { panic!("not read") };
        assert_eq!((f.on, f.nth, f.times, f.status), (FaultOn::Sample, 3, 1, Some(529)));
        assert!(matches!("3:429;retry-after=1".parse(), Ok(DriveFault::Request(_))));
        for spec in ["summary:2-4:empty", "work:3:529", "3:429;retry-after=1", "2-4:overflow"] {
            assert_eq!(spec.parse::<DriveFault>().unwrap().to_string(), spec);
        }
        for bad in ["summary:0:500", "summary:1:200", "summary:1", "work:2-1:500", "title:1:500"] {
            let told = bad.parse::<DriveFault>().unwrap_err().to_string();
            assert!(told.contains(bad) && told.contains("expected"), "{told}");
        }
    }
}
