//! Resuming a session: the history as the newest compaction left it and what came after it
//! (docs/sources/codex.md §4).

/// Tokens in use, and of all responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Of the newest response, or the local estimate after a compaction.
    pub last: u64,
    /// Of the whole session.
    pub session: u64,
}

/// What a resume needs to know of a line. `T` is an item of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<T> {
    /// A turn begins; what a turn compacted belongs to it.
    TurnStarted,
    /// Something entered the history.
    Item {
        /// The item.
        item: T,
        /// A person said it.
        user: bool,
    },
    /// The history was compacted.
    Compacted {
        /// The summary.
        summary: T,
        /// The new history; without it the history is rebuilt.
        replacement: Option<Vec<T>>,
    },
    /// The newest turns of the user were taken back.
    RolledBack {
        /// How many.
        turns: usize,
    },
    /// Tokens were reported or estimated.
    Counted(Count),
}

/// A session as it goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed<T> {
    /// The history.
    pub items: Vec<T>,
    /// The newest count of tokens.
    pub counted: Option<Count>,
}

/// Places of the lines that were not taken back, in order. Turns begin at [`Record::TurnStarted`],
/// or in a log without any at the user's messages; what stands before the first one stays. A turn
/// without a user message, such as a manual compaction, is taken back with the turn before it but
/// does not count.
pub fn surviving<T>(log: &[Record<T>]) -> Vec<usize> {
    let marked = log.iter().any(|r| matches!(r, Record::TurnStarted));
    let mut kept = Vec::new();
    let mut turn = Vec::new();
    let (mut has_user, mut pending) = (false, 0);
    for (i, record) in log.iter().enumerate().rev() {
        if let Record::RolledBack { turns } = record {
            kept.append(&mut turn);
            has_user = false;
            pending += turns;
            continue;
        }
        turn.push(i);
        let user = matches!(record, Record::Item { user: true, .. });
        has_user |= user;
        let begins = if marked { matches!(record, Record::TurnStarted) } else { user };
        if begins {
            if pending == 0 {
                kept.append(&mut turn);
            } else {
                pending -= usize::from(has_user);
                turn.clear();
            }
            has_user = false;
        }
    }
    kept.append(&mut turn);
    kept.reverse();
    kept
}

/// The history that a resumed session shows: the newest surviving compaction with a replacement is
/// the base, later items follow. A compaction without one (0.63, 0.104) is carried out again by
/// `rebuild`, from the history before it and its summary.
pub fn reconstruct<T: Clone>(
    log: &[Record<T>],
    rebuild: impl Fn(&[T], &T) -> Vec<T>,
) -> Resumed<T> {
    let lines = surviving(log);
    let base = lines
        .iter()
        .rposition(|&i| matches!(log[i], Record::Compacted { replacement: Some(_), .. }))
        .unwrap_or(0);
    let mut items: Vec<T> = Vec::new();
    for &i in &lines[base..] {
        match &log[i] {
            Record::Item { item, .. } => items.push(item.clone()),
            Record::Compacted { replacement: Some(new), .. } => items = new.clone(),
            Record::Compacted { summary, replacement: None } => items = rebuild(&items, summary),
            _ => {}
        }
    }
    let counted = |r: &Record<T>| match r {
        Record::Counted(count) => Some(*count),
        _ => None,
    };
    Resumed { items, counted: log.iter().rev().find_map(counted) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Record::{Compacted, Counted, RolledBack, TurnStarted};
    use proptest::prelude::*;

    fn says(item: &'static str) -> Record<&'static str> {
        Record::Item { item, user: item.starts_with('U') }
    }

    fn resumed(log: &[Record<&'static str>]) -> Vec<&'static str> {
        reconstruct(log, |before, s| {
            before.iter().copied().filter(|i| i.starts_with(['C', 'U'])).chain([*s]).collect()
        })
        .items
    }

    #[test]
    fn the_newest_replacement_is_the_base() {
        let log = [
            says("C"),
            TurnStarted,
            says("U1"),
            says("A1"),
            Counted(Count { last: 5_250, session: 7_300 }),
            TurnStarted,
            Compacted { summary: "S", replacement: Some(vec!["C", "U1", "S"]) },
            Counted(Count { last: 6_030, session: 7_300 }),
            says("U2"),
            says("A2"),
        ];
        assert_eq!(resumed(&log), ["C", "U1", "S", "U2", "A2"]);
        let newest = Count { last: 6_030, session: 7_300 };
        assert_eq!(reconstruct(&log, |_, _| vec![]).counted, Some(newest));
    }

    #[test]
    fn without_a_replacement_the_compaction_is_carried_out_again() {
        let compacted = |summary| Compacted { summary, replacement: None };
        let log = [
            says("C"),
            says("U1"),
            says("A1"),
            compacted("S1"),
            says("U2"),
            says("A2"),
            compacted("S2"),
            says("U3"),
        ];
        assert_eq!(resumed(&log), ["C", "U1", "U2", "S2", "U3"]);
    }

    #[test]
    fn a_rollback_past_a_compaction_brings_the_old_history_back() {
        let turn = |u, a| [TurnStarted, says(u), says(a)];
        let mut log = vec![says("C")];
        log.extend(turn("U1", "A1"));
        // Compacted before the second turn's message: part of that turn.
        log.extend([
            TurnStarted,
            Compacted { summary: "S", replacement: Some(vec!["C", "U1", "S"]) },
            says("U2"),
            says("A2"),
        ]);
        let mut kept = log.clone();
        kept.extend(turn("U3", "A3"));
        kept.push(RolledBack { turns: 1 });
        assert_eq!(resumed(&kept), ["C", "U1", "S", "U2", "A2"]);
        log.push(RolledBack { turns: 1 });
        assert_eq!(resumed(&log), ["C", "U1", "A1"]);
        log.push(RolledBack { turns: 5 });
        assert_eq!(resumed(&log), ["C"]);
        log.extend(turn("U4", "A4"));
        assert_eq!(resumed(&log), ["C", "U4", "A4"]);
    }

    #[test]
    fn a_manual_compaction_goes_with_the_turn_before_it() {
        let manual = [TurnStarted, Compacted { summary: "S", replacement: Some(vec!["S"]) }];
        let mut log = vec![TurnStarted, says("U1"), TurnStarted, says("U2")];
        log.extend(manual.clone());
        assert_eq!(resumed(&log), ["S"]);
        log.push(RolledBack { turns: 1 });
        assert_eq!(resumed(&log), ["U1"]);
        let mut before = vec![TurnStarted, says("U1")];
        before.extend(manual);
        before.extend([TurnStarted, says("U2"), RolledBack { turns: 1 }]);
        assert_eq!(resumed(&before), ["S"]);
    }

    fn record() -> impl Strategy<Value = Record<u32>> {
        prop_oneof![
            Just(TurnStarted),
            (any::<u32>(), any::<bool>()).prop_map(|(item, user)| Record::Item { item, user }),
            prop::collection::vec(any::<u32>(), 0..3)
                .prop_map(|r| Compacted { summary: 0, replacement: Some(r) }),
            (0usize..4).prop_map(|turns| RolledBack { turns }),
        ]
    }

    proptest! {
        #[test]
        fn what_follows_a_resume_only_adds(log in prop::collection::vec(record(), 0..40), more in prop::collection::vec(any::<u32>(), 0..5)) {
            let before = reconstruct(&log, |i, _| i.to_vec()).items;
            let mut log = log;
            log.push(TurnStarted);
            log.extend(more.iter().map(|&item| Record::Item { item, user: false }));
            prop_assert!(surviving(&log).is_sorted_by(|a, b| a < b));
            let after = reconstruct(&log, |i, _| i.to_vec()).items;
            if log.iter().filter(|r| matches!(r, TurnStarted)).count() > 1 {
                prop_assert_eq!(&after[..before.len()], &before[..]);
                prop_assert_eq!(&after[before.len()..], &more[..]);
            }
        }
    }
}
