//! Did the words of a manual compaction raise the retention of what they ask for?

use ctxbench_core::record::Results;

use crate::fmt;
use crate::sheet::Sheet;
use crate::view;

/// One sheet, if any run was steered.
pub(crate) fn sheets(results: &Results) -> Vec<Sheet> {
    let several_models = view::models(results).len() > 1;
    let several_summarisers = view::summarisers(results).len() > 1;
    let mut rows = Vec::new();
    for r in &results.runs {
        let Some(s) = &r.steering else { continue };
        let mut name = view::name(&r.scenario.id, &r.strategy.label, &r.model, several_models);
        name.extend(r.summariser.iter().filter(|_| several_summarisers).map(|s| format!(" [{s}]")));
        let pct = |x: Option<f64>| x.map_or("n/a".to_string(), fmt::pct);
        let gain = |with: Option<f64>, without: Option<f64>| match (with, without) {
            (Some(a), Some(b)) => fmt::signed(a - b, fmt::pct),
            _ => "n/a".to_string(),
        };
        let (with, without) = (Some(s.asked_with_pct), Some(s.asked_without_pct));
        rows.push(vec![
            name,
            s.asked.to_string(),
            pct(without),
            pct(with),
            gain(with, without),
            s.others.to_string(),
            pct(s.others_without_pct),
            pct(s.others_with_pct),
            gain(s.others_with_pct, s.others_without_pct),
        ]);
    }
    if rows.is_empty() {
        return vec![];
    }
    let head = ["scenario × strategy", "asked for", "without", "with", "gain", "others", "without", "with", "gain"];
    vec![Sheet {
        title: "Steering: facts kept %, without and with the instructions of the manual compaction".into(),
        note: "Asked for: facts that the instructions name by kind or path, needed after it; others: those they do not name. The same \
               run twice. Products that do not pass instructions on gain nothing."
            .into(),
        head: head.map(str::to_string).to_vec(),
        rows,
    }]
}
