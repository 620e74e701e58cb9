//! Checks that our implementation compacts at the same points as the recorded product. If it does
//! not, results with other settings do not apply to the product.

use ctxbench_core::CompactionKind;
use ctxbench_core::request::Purpose;

use crate::fmt;
use crate::record::{RequestRecord, RunRecord, Status};
use crate::recorded::before_reply;

/// Maximum distance between our compaction and the recorded one, in replies of the main
/// conversation.
pub const WITHIN: usize = 10;

/// Returns why our run with the present settings does not represent the recorded session. `None` if
/// each recorded compaction has one of our summaries within [`WITHIN`] replies, and each of our
/// summaries has a recorded compaction, and the costs are at most a tenth apart.
pub fn disagreement(recorded: &RunRecord, ours: &RunRecord) -> Option<String> {
    if ours.status != Status::Completed {
        let why = ours.error.as_deref().map(|e| format!(" ({e})")).unwrap_or_default();
        return Some(format!("our replay of it ended with {}{why}", ours.status.word()));
    }
    if ours.broken_rules() > 0 {
        return Some("our replay of it broke a rule of the provider".into());
    }
    let places = |r: &RunRecord| -> Vec<usize> {
        let summaries = r.compactions.iter().filter(|c| c.kind == CompactionKind::Summarise);
        summaries.map(|c| before_reply(r, c)).collect()
    };
    let (theirs, own) = (places(recorded), places(ours));
    let (who, other) = match unpaired(&theirs, &own) {
        None => return other_cost(recorded, ours),
        Some(Lone::Recorded(at)) => {
            (format!("it compacted before reply {at}"), "our implementation makes none")
        }
        Some(Lone::Ours(at)) => {
            (format!("our implementation compacts before reply {at}"), "the recording shows none")
        }
    };
    let (theirs, own) = (listed(&theirs), listed(&own));
    Some(format!("{who}, and {other} within {WITHIN} replies (recorded {theirs}, ours {own})"))
}

/// Largest difference between a modelled and a recorded figure, as a share of the recorded one.
const APART: f64 = 0.1;

fn other_cost(recorded: &RunRecord, ours: &RunRecord) -> Option<String> {
    if recorded.requests.iter().any(RequestRecord::is_unbilled) {
        return Some("some of its calls have no price here, so what it cost is not known".into());
    }
    let theirs = recorded.summary.cost_estimate_usd.unwrap_or(recorded.summary.cost_usd);
    // Where the recording does not tell what its summaries cost, ours are left out, too.
    let is_told = recorded.compactions.iter().all(|c| c.cost_usd.is_some());
    let summaries = ours.requests.iter().filter(|r| !is_told && r.purpose == Purpose::Summary);
    let own = ours.summary.cost_usd - summaries.map(|r| r.cost_usd).sum::<f64>();
    let cached = |r: &RunRecord| {
        let s = &r.summary;
        (s.input_tokens > 0).then(|| 100.0 * s.cache_read_tokens as f64 / s.input_tokens as f64)
    };
    let why = match (cached(recorded), cached(ours)) {
        (Some(real), Some(simulated)) if (real - simulated).abs() >= 1.0 => format!(
            "; the real cache served {real:.0} % of the input, the simulated one {simulated:.0} % \
             (`ctxbench validate` shows where)"
        ),
        _ => String::new(),
    };
    ((own - theirs).abs() > APART * theirs).then(|| {
        format!(
            "our replay of it costs ${}, and the recording ${}: more than a tenth apart{why}",
            fmt::usd(own),
            fmt::usd(theirs)
        )
    })
}

/// Says at which sizes the recordings compacted, and our replays of the same sessions with the
/// present settings, and whether these settings took effect. `versions` are those of the recorded
/// program. Sizes agree if their medians are at most a tenth apart.
pub fn effect(versions: &str, recorded: &[RunRecord], ours: &[RunRecord]) -> String {
    let range = |sizes: &[u64]| {
        let ends = [sizes.first(), sizes.last()].map(|n| fmt::tokens(*n.unwrap_or(&0) as f64));
        if ends[0] == ends[1] { ends[0].clone() } else { format!("{} to {}", ends[0], ends[1]) }
    };
    let (theirs, own) = (sizes(recorded), sizes(ours));
    let middle = |sizes: &[u64]| sizes[sizes.len() / 2] as f64;
    let recorded = format!("the recordings{versions} compacted at {} tokens", range(&theirs));
    match (&theirs[..], &own[..]) {
        ([], []) => "No recording compacted, so none shows which settings were in force.".into(),
        ([], _) => format!(
            "Today's settings were not in force: the recordings{versions} never compacted, the \
             replays did at {} tokens.",
            range(&own)
        ),
        (_, []) => format!("Today's settings were not in force: {recorded}, the replays never."),
        _ => {
            let same = (middle(&theirs) - middle(&own)).abs() <= APART * middle(&theirs);
            let so = if same { "took effect" } else { "did not take effect" };
            format!("Today's settings {so}: {recorded}, the replays at {}.", range(&own))
        }
    }
}

/// Sizes of the prompts before summaries, tokens, ascending.
pub(super) fn sizes<'a>(runs: impl IntoIterator<Item = &'a RunRecord>) -> Vec<u64> {
    let all = runs.into_iter().flat_map(|r| &r.compactions);
    let summaries = all.filter(|c| c.kind == CompactionKind::Summarise);
    let mut sizes: Vec<u64> = summaries.map(|c| c.before_tokens).collect();
    sizes.sort_unstable();
    sizes
}

/// A compaction without a counterpart.
#[derive(Debug, PartialEq, Eq)]
enum Lone {
    Recorded(usize),
    Ours(usize),
}

/// Returns the first position that has no counterpart in the other list within [`WITHIN`] replies.
/// Both lists are in ascending order.
fn unpaired(recorded: &[usize], ours: &[usize]) -> Option<Lone> {
    let (mut theirs, mut own) = (recorded.iter().peekable(), ours.iter().peekable());
    loop {
        match (theirs.peek(), own.peek()) {
            (None, None) => return None,
            (Some(a), Some(b)) if a.abs_diff(**b) <= WITHIN => {
                theirs.next();
                own.next();
            }
            (Some(a), Some(b)) if a > b => return Some(Lone::Ours(**b)),
            (Some(a), _) => return Some(Lone::Recorded(**a)),
            (None, Some(b)) => return Some(Lone::Ours(**b)),
        }
    }
}

fn listed(places: &[usize]) -> String {
    match places {
        [] => "none".into(),
        all => {
            let numbers: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!("before {}", numbers.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn each_has_its_own_within_ten_replies() {
        assert_eq!(unpaired(&[], &[]), None);
        assert_eq!(unpaired(&[100, 200], &[110, 190]), None);
        assert_eq!(unpaired(&[100], &[111]), Some(Lone::Recorded(100)));
        assert_eq!(unpaired(&[111], &[100]), Some(Lone::Ours(100)));
        // A compaction is paired at most once.
        assert_eq!(unpaired(&[100, 105], &[102]), Some(Lone::Recorded(105)));
        assert_eq!(unpaired(&[102], &[100, 105]), Some(Lone::Ours(105)));
        assert_eq!(unpaired(&[], &[7]), Some(Lone::Ours(7)));
        assert_eq!(unpaired(&[7], &[]), Some(Lone::Recorded(7)));
    }

    /// A run that compacts right before these replies.
    fn run(places: &[usize]) -> RunRecord {
        let mut r = testing::run("s", "codex", 1);
        let one = r.requests[0].clone();
        r.requests = (0..300).map(|seq| RequestRecord { seq, ..one.clone() }).collect();
        let compaction = r.compactions[0].clone();
        let at = |place: &usize| crate::record::CompactionRecord {
            kind: CompactionKind::Summarise,
            before_request: *place as u64,
            ..compaction.clone()
        };
        r.compactions = places.iter().map(at).collect();
        r
    }

    #[test]
    fn sizes_before_compactions_tell_whether_a_setting_took_effect() {
        let sized = |tokens: &[u64]| {
            let mut r = run(&vec![9; tokens.len()]);
            r.compactions.iter_mut().zip(tokens).for_each(|(c, n)| c.before_tokens = *n);
            [r]
        };
        let told = |theirs: &[u64], ours: &[u64]| effect(" (2.1)", &sized(theirs), &sized(ours));
        let head = "the recordings (2.1) compacted at ";
        assert_eq!(
            told(&[167_000, 170_000], &[165_000]),
            format!(
                "Today's settings took effect: {head}167k to 170k tokens, the replays at 165k."
            )
        );
        // 126 is more than a tenth below 167.
        assert_eq!(
            told(&[167_000], &[126_000]),
            format!(
                "Today's settings did not take effect: {head}167k tokens, the replays at 126k."
            )
        );
        assert!(told(&[], &[126_000]).starts_with("Today's settings were not in force"));
        assert!(told(&[126_000], &[]).starts_with("Today's settings were not in force"));
        assert!(told(&[], &[]).starts_with("No recording compacted"));
    }

    #[test]
    fn what_is_missed_is_said_with_all_places() {
        assert_eq!(disagreement(&run(&[131]), &run(&[127])), None);
        assert_eq!(
            disagreement(&run(&[131, 250]), &run(&[127])).unwrap(),
            "it compacted before reply 250, and our implementation makes none within 10 replies \
             (recorded before 131, 250, ours before 127)"
        );
        assert_eq!(
            disagreement(&run(&[]), &run(&[127])).unwrap(),
            "our implementation compacts before reply 127, and the recording shows none within 10 \
             replies (recorded none, ours before 127)"
        );
    }

    #[test]
    fn clearing_is_no_compaction_that_a_recording_shows() {
        let mut ours = run(&[60, 127]);
        ours.compactions[0].kind = CompactionKind::Clear;
        assert_eq!(disagreement(&run(&[131]), &ours), None);
    }

    #[test]
    fn a_replay_that_died_stands_for_nothing() {
        let mut ours = run(&[131]);
        (ours.status, ours.error) = (Status::Overflow, Some("full".into()));
        let why = disagreement(&run(&[131]), &ours).unwrap();
        assert_eq!(why, "our replay of it ended with overflow (full)");
    }
}
