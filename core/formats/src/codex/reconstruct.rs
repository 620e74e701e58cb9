//! Resume of a session: the history of the newest compaction, followed by later items
//! (docs/sources/codex.md §4).

/// Token totals at a point of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenTotals {
    /// Tokens of the newest response, or the local estimate after a compaction.
    pub last: u64,
    /// Tokens of the whole session.
    pub session: u64,
}

/// A line as a resume needs it. `T` is an item of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<T> {
    /// Start of a turn. A compaction during a turn belongs to it.
    TurnStarted,
    /// A new item in the history.
    Item {
        item: T,
        /// Whether the user wrote the item.
        user: bool,
    },
    Compacted {
        summary: T,
        /// The new history; `None` = rebuild it.
        replacement: Option<Vec<T>>,
    },
    /// Rollback of the newest user turns.
    RolledBack { turns: usize },
    /// Reported or estimated tokens.
    Counted(TokenTotals),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ResumedSession<T> {
    /// History of the model.
    pub items: Vec<T>,
    /// Newest token totals.
    pub counted: Option<TokenTotals>,
}

/// Returns the indices of lines that were not rolled back, in order.
///
/// Turns start at [`Record::TurnStarted`], or at user messages in a log without turn markers. Lines
/// before the first turn are always kept. A turn without a user message, such as a manual
/// compaction, is rolled back together with the turn before it and does not count as a turn.
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

/// Reconstructs the history of a resumed session.
///
/// Starts with the replacement of the newest surviving compaction and appends later items. For a
/// compaction without a replacement (0.63, 0.104), calls `rebuild` with the history before it and
/// the summary.
pub fn reconstruct<T: Clone>(
    log: &[Record<T>],
    rebuild: impl Fn(&[T], &T) -> Vec<T>,
) -> ResumedSession<T> {
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
    ResumedSession { items, counted: log.iter().rev().find_map(counted) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Record::{Compacted, Counted, RolledBack, TurnStarted};
    use proptest::prelude::*;

    fn message(item: &'static str) -> Record<&'static str> {
        Record::Item { item, user: item.starts_with('U') }
    }

    fn resumed(log: &[Record<&'static str>]) -> Vec<&'static str> {
        reconstruct(log, |before, s| {
            before.iter().copied().filter(|i| i.starts_with(['C', 'U'])).chain([*s]).collect()
        })
        .items
    }

    #[test]
    fn reconstruct_starts_with_newest_replacement() {
        let log = [
            message("C"),
            TurnStarted,
            message("U1"),
            message("A1"),
            Counted(TokenTotals { last: 5_250, session: 7_300 }),
            TurnStarted,
            Compacted { summary: "S", replacement: Some(vec!["C", "U1", "S"]) },
            Counted(TokenTotals { last: 6_030, session: 7_300 }),
            message("U2"),
            message("A2"),
        ];
        assert_eq!(resumed(&log), ["C", "U1", "S", "U2", "A2"]);
        let newest = TokenTotals { last: 6_030, session: 7_300 };
        assert_eq!(reconstruct(&log, |_, _| vec![]).counted, Some(newest));
    }

    #[test]
    fn reconstruct_without_replacement_rebuilds_history() {
        let compacted = |summary| Compacted { summary, replacement: None };
        let log = [
            message("C"),
            message("U1"),
            message("A1"),
            compacted("S1"),
            message("U2"),
            message("A2"),
            compacted("S2"),
            message("U3"),
        ];
        assert_eq!(resumed(&log), ["C", "U1", "U2", "S2", "U3"]);
    }

    #[test]
    fn rollback_past_compaction_restores_old_history() {
        let turn = |u, a| [TurnStarted, message(u), message(a)];
        let mut log = vec![message("C")];
        log.extend(turn("U1", "A1"));
        // A compaction before the second turn's message is part of that turn.
        log.extend([
            TurnStarted,
            Compacted { summary: "S", replacement: Some(vec!["C", "U1", "S"]) },
            message("U2"),
            message("A2"),
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
    fn rollback_removes_manual_compaction_with_turn_before_it() {
        let manual = [TurnStarted, Compacted { summary: "S", replacement: Some(vec!["S"]) }];
        let mut log = vec![TurnStarted, message("U1"), TurnStarted, message("U2")];
        log.extend(manual.clone());
        assert_eq!(resumed(&log), ["S"]);
        log.push(RolledBack { turns: 1 });
        assert_eq!(resumed(&log), ["U1"]);
        let mut before = vec![TurnStarted, message("U1")];
        before.extend(manual);
        before.extend([TurnStarted, message("U2"), RolledBack { turns: 1 }]);
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
        fn items_after_resume_are_appended(log in prop::collection::vec(record(), 0..40), more in prop::collection::vec(any::<u32>(), 0..5)) {
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
