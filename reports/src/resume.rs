//! Opening a session again: what the product's files give back, and what the product does then.

use ctxbench_core::record::{Results, ResumeFile};

use crate::fmt;
use crate::sheet::Sheet;
use crate::view;

/// One sheet, if any session was restarted.
pub(crate) fn sheets(results: &Results) -> Vec<Sheet> {
    let several_models = view::models(results).len() > 1;
    let several_summarisers = view::summarisers(results).len() > 1;
    let mut rows = Vec::new();
    for r in &results.runs {
        for s in &r.resume {
            let mut name = view::name(&r.scenario.id, &r.strategy.label, &r.model, several_models);
            name.extend(r.summariser.iter().filter(|_| several_summarisers).map(|s| format!(" [{s}]")));
            let figure = |of: &dyn Fn(&ResumeFile) -> String| s.file.as_ref().map_or_else(|| "n/a".to_string(), of);
            let yes = |b: bool| if b { "yes" } else { "no" }.to_string();
            rows.push(vec![
                name,
                s.file.as_ref().map_or_else(|| s.error.clone().unwrap_or_else(|| "keeps nothing".into()), |f| f.format.clone()),
                figure(&|f| fmt::tokens(f.bytes_read as f64)),
                figure(&|f| fmt::tokens(f.stored_bytes as f64)),
                s.messages.to_string(),
                figure(&|f| f.lost.to_string()),
                figure(&|f| f.garbled.to_string()),
                figure(&|f| f.surplus.to_string()),
                figure(&|f| yes(f.context_equal)),
                yes(s.shown_equal),
                s.resume_summary_calls.to_string(),
                fmt::seconds(s.resume_blocked_ms as f64 / 1_000.0),
                figure(&|f| f.recoverable_pct.map_or("n/a".into(), fmt::pct)),
            ]);
        }
    }
    if rows.is_empty() {
        return vec![];
    }
    let head = [
        "scenario × strategy",
        "format",
        "read B",
        "of B",
        "messages",
        "lost",
        "garbled",
        "surplus",
        "file same",
        "shown same",
        "summaries",
        "waited s",
        "in file %",
    ];
    vec![Sheet {
        title: "Resume: the session written, closed and opened again, in the formats of each product".into(),
        note: "Messages of the context before: lost, garbled (other words or another speaker), surplus (came back though no longer \
               shown). File same: the file gives the very context back; shown same: the product shows it by its own rules. Summaries \
               and waiting: between the restart and the first answer. In file: facts said before the restart that the file still holds."
            .into(),
        head: head.map(str::to_string).to_vec(),
        rows,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use ctxbench_core::record::ResumeRecord;

    #[test]
    fn a_row_per_restart_and_format_and_none_without() {
        let mut results = sample::results();
        assert!(sheets(&results).is_empty());
        let file = ResumeFile { format: "codex-rollout".into(), bytes_read: 1_200, lost: 2, context_equal: false, ..ResumeFile::default() };
        let record = ResumeRecord { restart: 1, messages: 9, resume_blocked_ms: 1_500, file: Some(file), ..ResumeRecord::default() };
        results.runs[0].resume = vec![record.clone(), ResumeRecord { file: None, ..record }];
        let rows = &sheets(&results)[0].rows;
        assert_eq!((rows.len(), rows[0].len()), (2, sheets(&results)[0].head.len()));
        assert_eq!((rows[0][1].as_str(), rows[0][5].as_str(), rows[0][8].as_str()), ("codex-rollout", "2", "no"));
        assert_eq!((rows[1][1].as_str(), rows[1][5].as_str()), ("keeps nothing", "n/a"));
        let csv = crate::csv::resume(&results);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("scenario,strategy,model,restart,format,messages,stored_bytes,bytes_read,lost,garbled,surplus"));
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains(",1,codex-rollout,9,0,1200,2,0,0,false,false,0,1500,n/a,"), "{}", lines[1]);
        assert!(lines[2].contains(",1,n/a,9,n/a,n/a,"), "{}", lines[2]);
    }
}
