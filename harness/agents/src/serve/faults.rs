//! Deliberate faults: refusals, delays, broken streams. A header of a request or its number selects
//! them.

use std::str::FromStr;

use ctxbench_core::tokens::content_hash;
use ctxbench_util::lru_map::LruMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// As it was given.
    pub spec: String,
    pub status: Option<u16>,
    /// Value of its `retry-after` header, seconds.
    pub retry_after: Option<u64>,
    /// Refuse as if the prompt were larger than the window.
    pub overflow: bool,
    /// Wait before the answer begins, ms.
    pub slow_ms: u64,
    /// Wait between two events of a stream, ms.
    pub pace_ms: u64,
    /// Break the connection after N events of a stream, or in the middle of the body of a whole
    /// reply.
    pub cut: Option<usize>,
    /// Number of times it happens; `None` = each time. A plan has its own counter; headers are
    /// counted by their text, and `id=WORD` makes the same fault a separate one.
    pub times: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFault(pub(crate) String);

fn bad(spec: &str, why: &str) -> BadFault {
    BadFault(format!(
        "fault `{spec}`: {why}; expected parts of 400..599, overflow, retry-after=S, slow=MS, \
         pace=MS, cut=EVENTS, times=N, id=WORD, joined by `;`"
    ))
}

/// Longest delay that a fault may ask for, ms: longer than any client waits by default.
const LONGEST_MS: u64 = 3_600_000;

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(spec: &str) -> Result<Self, Self::Err> {
        let mut f = Fault { spec: spec.to_string(), ..Fault::default() };
        let mut is_empty = true;
        for part in spec.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) =
                part.split_once('=').map_or((part, None), |(n, v)| (n.trim(), Some(v.trim())));
            let number = || {
                value
                    .and_then(|v| v.parse::<u64>().ok())
                    .ok_or_else(|| bad(spec, &format!("`{name}` needs a whole number")))
            };
            is_empty &= name == "id";
            match name {
                "overflow" => f.overflow = true,
                "retry-after" => f.retry_after = Some(number()?),
                "slow" => f.slow_ms = number()?.min(LONGEST_MS),
                "pace" => f.pace_ms = number()?.min(LONGEST_MS),
                "cut" => f.cut = Some(number()?.try_into().unwrap_or(usize::MAX)),
                "times" => f.times = Some(number()?),
                "id" if value.is_some_and(|v| !v.is_empty()) => {}
                status => match status.parse() {
                    Ok(s @ 400..=599) => f.status = Some(s),
                    _ => return Err(bad(spec, &format!("`{part}` is none"))),
                },
            }
        }
        if is_empty { Err(bad(spec, "nothing is asked for")) } else { Ok(f) }
    }
}

/// A fault of certain requests, such as `3:500` or `2-4:429;retry-after=1`. Requests for replies
/// are counted, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The first request that it is for.
    pub(crate) from: u64,
    to: u64,
    fault: Fault,
}

impl FromStr for FaultPlan {
    type Err = BadFault;

    fn from_str(spec: &str) -> Result<Self, Self::Err> {
        let bad =
            || bad(spec, "it begins with a request's number and `:`, such as `3:500` or `2-4:500`");
        let (at, fault) = spec.split_once(':').ok_or_else(bad)?;
        let (from, to) = request_numbers(at).ok_or_else(bad)?;
        Ok(FaultPlan { from, to, fault: fault.parse()? })
    }
}

/// Parses the number of a request or a range of numbers, from 1: `3`, `2-4`.
pub fn request_numbers(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let number = |n: &str| n.trim().parse::<u64>().ok().filter(|n| *n > 0);
    number(from).zip(number(to)).filter(|(from, to)| from <= to)
}

pub(super) struct Faults {
    /// Each with how often it happened.
    plans: Vec<(FaultPlan, u64)>,
    pub(super) requests: u64,
    /// Number of times each header text was seen, by its hash.
    happened: LruMap<u64, u64>,
}

/// Maximum number of headers with a counter; the least recently seen start again.
const MAX_HEADERS: usize = 100_000;

impl Faults {
    pub(super) fn new(plans: Vec<FaultPlan>) -> Self {
        Faults {
            plans: plans.into_iter().map(|p| (p, 0)).collect(),
            requests: 0,
            happened: LruMap::new(MAX_HEADERS),
        }
    }

    /// The fault of the next request for a reply. A header comes before the plans, of which the
    /// first counts that is not used up.
    pub(super) fn next(&mut self, header: Option<&str>) -> Result<Option<Fault>, BadFault> {
        self.requests += 1;
        let Some(words) = header else {
            let n = self.requests;
            let due = |p: &FaultPlan, happened: u64| {
                (p.from..=p.to).contains(&n) && p.fault.times.is_none_or(|most| happened < most)
            };
            return Ok(self.plans.iter_mut().find(|(p, happened)| due(p, *happened)).map(
                |(p, happened)| {
                    *happened += 1;
                    p.fault.clone()
                },
            ));
        };
        let fault: Fault = words.parse()?;
        let Some(most) = fault.times else { return Ok(Some(fault)) };
        let words = content_hash(words.as_bytes());
        let n = self.happened.get(&words).copied().unwrap_or(0).saturating_add(1);
        self.happened.insert(words, n);
        Ok(Some(fault).filter(|_| n <= most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_from_its_words() {
        let f: Fault = "429; retry-after=2;times=1".parse().unwrap();
        assert_eq!((f.status, f.retry_after, f.times), (Some(429), Some(2), Some(1)));
        let f: Fault = "slow=5;pace=1;cut=3".parse().unwrap();
        assert_eq!((f.slow_ms, f.pace_ms, f.cut, f.status), (5, 1, Some(3), None));
        for bad in [
            "",
            "nonsense",
            "200",
            "cut",
            "cut=x",
            "cut=-1",
            "retry-after=soon",
            "429,retry-after=1",
        ] {
            assert!(bad.parse::<Fault>().is_err(), "{bad}");
        }
        for bad in ["500", "0:500", "x:500", "3-2:500", "1:", "1-2-3:500"] {
            assert!(bad.parse::<FaultPlan>().is_err(), "{bad}");
        }
    }

    #[test]
    fn plans_go_by_number_and_headers_by_their_words() {
        let mut f = Faults::new(vec!["2-3:500".parse().unwrap()]);
        let mut status = |header| f.next(header).unwrap().and_then(|f| f.status);
        assert_eq!(
            [status(None), status(None), status(None), status(None)],
            [None, Some(500), Some(500), None]
        );
        let plans = ["1-5:500;times=2", "4-6:529;times=1"].map(|p| p.parse().unwrap()).to_vec();
        let mut f2 = Faults::new(plans);
        let got: Vec<_> = (0..6).map(|_| f2.next(None).unwrap().and_then(|f| f.status)).collect();
        assert_eq!(
            got,
            [Some(500), Some(500), None, Some(529), None, None],
            "a plan happens so often within its numbers"
        );
        let once = Some("429;times=1");
        assert_eq!(
            [status(once), status(once), status(Some("429;times=1;"))],
            [Some(429), None, Some(429)]
        );
    }
}
