use super::*;

#[test]
fn columns_are_unique_and_directed() {
    for m in METRICS {
        assert_eq!(METRICS.iter().filter(|o| o.column == m.column).count(), 1, "{}", m.column);
    }
    // Readers lose sight of the figures that decide. Drop one before you add one.
    assert!(METRICS.len() <= 36, "{} columns", METRICS.len());
    assert_eq!(find("recall_pct").unwrap().better, Better::Higher);
    assert_eq!(find("trigger_error_tokens").unwrap().better, Better::Neither);
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
    places(|m| &m.judged);
    places(|m| &m.compared);
    places(|m| &m.gated);
}

#[test]
fn what_the_gate_compares_is_directed() {
    for m in METRICS.iter().filter(|m| m.gated.is_some()) {
        assert!(m.better != Better::Neither, "{}", m.column);
    }
}

#[test]
fn front_and_headline_metrics_are_judged() {
    for m in METRICS.iter().filter(|m| m.on_front || m.headline) {
        assert!(m.judged.is_some() && m.better != Better::Neither, "{}", m.column);
    }
}

#[test]
fn people_read_seconds_and_per_cent() {
    assert_eq!(
        (Unit::Millis.format_value(1_500.0), Unit::Millis.describe(1_500.0)),
        ("1.5".into(), "1.5 s".into())
    );
    assert_eq!(
        (Unit::Share.format_value(0.25), Unit::Usd.describe(2.0)),
        ("25.0".into(), "$2.000".into())
    );
}
