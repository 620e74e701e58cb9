//! Effect of the instructions of a manual compaction on the retention of the requested facts.

use crate::fmt;
use crate::record::Steering;
use crate::sheet::ByBlock;

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Steering: facts kept %, without and with the instructions of the manual compaction",
    note: "Asked for: facts that the instructions name by kind or path, needed after it; others: \
        those they do not name. The same run twice. Products that do not pass instructions on \
        gain nothing.",
    head: &["asked for", "without", "with", "gain", "others", "without", "with", "gain"],
    told: |_| None,
    rows: |r| r.steering.iter().map(row).collect(),
};

fn row(s: &Steering) -> Vec<String> {
    let pct = |x: Option<f64>| fmt::known(x, fmt::pct);
    let gain = |with: Option<f64>, without: Option<f64>| {
        fmt::known(with.zip(without), |(a, b)| fmt::signed(a - b, fmt::pct))
    };
    let (with, without) = (Some(s.asked_with_pct), Some(s.asked_without_pct));
    vec![
        s.asked.to_string(),
        pct(without),
        pct(with),
        gain(with, without),
        s.others.to_string(),
        pct(s.others_without_pct),
        pct(s.others_with_pct),
        gain(s.others_with_pct, s.others_without_pct),
    ]
}
