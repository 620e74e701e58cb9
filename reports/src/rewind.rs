//! Going back: what came back of files and conversation, and what it cost to keep.

use ctxbench_core::record::{Results, RewindRecord};

use crate::fmt;
use crate::sheet::Sheet;
use crate::view;

/// One sheet, if any session has a rewind.
pub(crate) fn sheets(results: &Results) -> Vec<Sheet> {
    let several_models = view::models(results).len() > 1;
    let mut rows = Vec::new();
    // Controls are no products: they stand in rewind.csv.
    for r in results.runs.iter().filter(|r| !r.strategy.control && !r.strategy.hypothetical) {
        for w in &r.rewinds {
            let name = view::name(&r.scenario.id, &r.strategy.label, &r.model, several_models);
            rows.push(row(name, w));
        }
    }
    if rows.is_empty() {
        return vec![];
    }
    let head = ["scenario × strategy", "to", "mode", "status", "files", "success %", "context", "as then", "edit tools B", "shadow git B"];
    vec![Sheet {
        title: "Rewind: files that came back, and whether the context is the one of then".into(),
        note: "Files: of those that had changed since the prompt, by whatever means, the ones that equal their state of then; what a shell \
               command changed unseen is missing there. Context in tokens, before → after. Bytes that either way keeps of the session up to \
               here, before compression. n/a: the product does not do this, or the session does not say what is on disk."
            .into(),
        head: head.map(str::to_string).to_vec(),
        rows,
    }]
}

fn row(name: String, w: &RewindRecord) -> Vec<String> {
    let code = w.code.as_ref();
    let int = |n: Option<u64>| n.map_or("n/a".to_string(), |n| n.to_string());
    let context = match (w.context_before, w.context_after) {
        (Some(a), Some(b)) => format!("{a} → {b}"),
        _ => "n/a".into(),
    };
    let shown = |yes: Option<bool>| match yes {
        Some(true) => "yes".to_string(),
        Some(false) => "no".to_string(),
        None => "n/a".to_string(),
    };
    vec![
        name,
        w.to.clone(),
        w.mode.clone(),
        w.status.clone(),
        code.map_or("n/a".into(), |c| format!("{} of {}", c.restored, c.changed)),
        code.and_then(|c| c.success_pct).map_or("n/a".into(), fmt::pct),
        context,
        shown(w.context_equal),
        int(code.map(|c| c.edit_tools_bytes)),
        int(code.and_then(|c| c.shadow_git_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use ctxbench_core::record::CodeRewind;

    use super::*;
    use crate::sample;

    #[test]
    fn no_rewind_no_sheet_and_unknown_is_not_zero() {
        let mut results = sample::results();
        results.runs.retain(|r| !r.strategy.control && !r.strategy.hypothetical);
        assert!(sheets(&results).is_empty());
        let code = CodeRewind { changed: 4, restored: 1, missed: vec!["a".into(); 3], success_pct: Some(25.0), ..CodeRewind::default() };
        let done = RewindRecord { status: "done".into(), context_before: Some(9), context_after: Some(4), ..RewindRecord::default() };
        let with = RewindRecord { code: Some(code), context_equal: Some(true), ..done };
        results.runs[0].rewinds = vec![with, RewindRecord { status: "n/a".into(), ..RewindRecord::default() }];
        let rows = &sheets(&results)[0].rows;
        assert_eq!(rows[0][3..].join(" | "), "done | 1 of 4 | 25.0 | 9 → 4 | yes | 0 | n/a");
        assert_eq!(rows[1][3..].join(" | "), "n/a | n/a | n/a | n/a | n/a | n/a | n/a");
        let csv = crate::rewinds(&results);
        assert_eq!(csv.lines().count(), 3);
        assert!(csv.lines().nth(2).unwrap().contains("n/a,n/a,n/a"), "{csv}");
    }
}
