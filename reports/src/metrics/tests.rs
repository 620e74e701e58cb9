use super::*;
use crate::record::Fate;
use ctxbench_core::fact::FactKind;

#[test]
fn columns_are_unique_and_directed() {
    for m in METRICS {
        assert_eq!(METRICS.iter().filter(|o| o.column == m.column).count(), 1, "{}", m.column);
    }
    let directed = METRICS.iter().filter(|m| m.better != Better::Neither).count();
    // 18 that are better low, 7 that are better high, retention and its eight kinds, needs kept,
    // those of them that were exposed and those behind the end of a session.
    assert_eq!(directed, 18 + 7 + 9 + 3);
    assert_eq!(find("retention_constraint_pct").unwrap().better, Better::Higher);
    assert_eq!(find("trigger_error_tokens").unwrap().better, Better::Neither);
}

#[test]
fn every_kind_of_fact_and_every_end_of_a_race_has_its_column() {
    let mut r = RunRecord::default();
    for (i, kind) in FactKind::ALL.into_iter().enumerate() {
        r.summary.retention_by_kind.insert(kind, i as f64);
        let m = find(&format!("retention_{}_pct", kind.name())).unwrap();
        assert_eq!(m.value(&r), Some(i as f64));
        assert_eq!(m.detail.unwrap().1, format!("{} %", kind.name()));
    }
    for fate in Fate::ALL {
        assert_eq!(
            find(&format!("background_{}", crate::record::word(&fate))).unwrap().value(&r),
            Some(0.0)
        );
    }
}

#[test]
fn no_two_metrics_have_the_same_place() {
    fn places<T: 'static>(place: impl Fn(&'static Metric) -> &'static Rank<T>) {
        let mut at: Vec<u16> =
            METRICS.iter().filter_map(|m| place(m).as_ref().map(|(at, _)| *at)).collect();
        at.sort_unstable();
        let all = at.len();
        at.dedup();
        assert_eq!(at.len(), all, "{at:?}");
    }
    places(|m| &m.scored);
    places(|m| &m.detail);
    places(|m| &m.ranked);
    places(|m| &m.judged);
    places(|m| &m.compared);
    places(|m| &m.gated);
    places(|m| &m.stored);
}

#[test]
fn what_the_gate_compares_is_stored() {
    for m in METRICS.iter().filter(|m| m.gated.is_some()) {
        assert!(m.stored.is_some(), "{}", m.column);
        assert!(m.better != Better::Neither, "{}", m.column);
    }
}

#[test]
fn what_ranks_is_judged() {
    for m in METRICS.iter().filter(|m| m.ranked.is_some()) {
        assert!(m.judged.is_some() && m.better != Better::Neither, "{}", m.column);
    }
}

#[test]
fn people_read_seconds_and_per_cent() {
    assert_eq!(
        (Unit::Millis.show(1_500.0), Unit::Millis.say(1_500.0)),
        ("1.5".into(), "1.5 s".into())
    );
    assert_eq!((Unit::Share.show(0.25), Unit::Usd.say(2.0)), ("25.0".into(), "$2.000".into()));
}
