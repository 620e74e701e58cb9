//! What remembers nothing must not win, and nothing remembers more than the ideal summary.

use std::sync::LazyLock;

use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::Options;
use ctxbench_scenarios::{Scenario, autofacts};

use crate::common::{recordings, replayed};

/// Two recordings with a compaction each.
static SESSIONS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let scenario = |name: &&str| {
        let mut session = recordings::session(name);
        autofacts::add(&mut session);
        Scenario { id: name.to_string(), scale: 1.0, session, ..Scenario::default() }
    };
    recordings::DIRECT.iter().map(scenario).collect()
});

/// Dollars of a row and mean recall over both sessions, per cent.
fn row(spec: &str, summariser: Summariser) -> (f64, f64) {
    let options = Options { summariser, ..Options::default() };
    let runs: Vec<_> = SESSIONS
        .iter()
        .map(|s| replayed::run_with("claude-opus-4-6", s, spec, &options).summary)
        .collect();
    let recall: f64 = runs.iter().map(|s| s.recall_pct.unwrap()).sum();
    (runs.iter().map(|s| s.cost_usd).sum(), recall / runs.len() as f64)
}

#[test]
fn no_list_of_words_is_on_the_front_of_products() {
    let specs =
        ["claude-code", "codex", "codex:auto_compact_limit=50%", "codex:auto_compact_limit=70%"];
    let products = specs.map(|spec| (spec, row(spec, Summariser::Extractive)));
    for list in ["word-list", "word-list:limit=0.7", "shuffled-list"] {
        let (usd, recall) = row(list, Summariser::Extractive);
        let beats = |(_, (u, r)): &(&str, (f64, f64))| *u <= usd && *r >= recall;
        assert!(products.iter().any(beats), "{list}: ${usd:.3}, {recall:.1} %, {products:?}");
    }
}

#[test]
fn the_ideal_summary_keeps_most_and_the_reference_everything() {
    for product in ["claude-code", "codex"] {
        let (_, own) = row(product, Summariser::Extractive);
        let (_, ideal) = row(product, Summariser::Ideal);
        assert!(ideal >= own, "{product}: ideal {ideal:.1} %, extractive {own:.1} %");
    }
    assert_eq!(row("reference", Summariser::Extractive).1, 100.0);
}
