//! Which way is better, per column of `summary.csv`: the one place that tables, gate and verdicts ask.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
    /// Neither good nor bad by itself: no best value, no verdict.
    Neither,
}

/// The direction of a column; a column that is not named here has none.
pub(crate) fn better(column: &str) -> Better {
    match column {
        "cost_usd" | "cost_read_005_usd" | "cost_read_0025_usd" => Better::Lower,
        "input_tokens" | "task_tokens" | "peak_context_tokens" | "invalidated_tokens" | "reread_tokens" => Better::Lower,
        "blocked_ms" | "total_ms" | "step_p50_ms" | "step_p95_ms" | "compaction_p50_ms" | "compaction_p95_ms" => Better::Lower,
        "extra_requests" | "provider_overflows" | "user_interventions" | "integrity_failures" => Better::Lower,
        "saved_pct" | "cost_saved_pct" | "prefix_stability" | "cache_read_ratio" | "reusable" | "steps_completed" => Better::Higher,
        "summary_retention_pct" => Better::Higher,
        c if c.starts_with("retention_") => Better::Higher,
        _ => Better::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::record::RunRecord;

    #[test]
    fn every_named_column_exists() {
        let columns: Vec<String> = RunRecord::default().columns().into_iter().map(|(name, _)| name).collect();
        let directed = columns.iter().filter(|c| better(c) != Better::Neither).count();
        // 18 that are better low, 7 that are better high, retention and its eight kinds.
        assert_eq!(directed, 18 + 7 + 9);
        assert_eq!(better("retention_constraint_pct"), Better::Higher);
        assert_eq!(better("strategy"), Better::Neither);
        assert_eq!(better("trigger_error_tokens"), Better::Neither, "a guess may be wrong in either direction");
    }
}
