//! The rows of a run. Finished rows are taken from the cache, new rows are stored in it, and
//! reports read them session by session.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctxbench_core::model::Model;
use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::keys::{Keys, SessionKeys};
use ctxbench_replay::recorded::as_recorded;
use ctxbench_replay::run::{Plan, Taker, Variant};
use ctxbench_replay::{Loading, Replayed, with_savings};
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_reports::{ReportError, Row, RowCache, Rows, Take, sort_runs};
use ctxbench_scenarios::Scenario;
use ctxbench_util::natural;

use super::listed::SessionSummary;
use crate::commands::corpus::Progress;
use crate::commands::otel::MetricsExport;

pub(super) struct RunRows<'a> {
    pub(super) plan: Plan,
    pub(super) listed: &'a [SessionSummary],
    pub(super) keys: Keys,
    pub(super) cache: RowCache,
    /// Whether rows may be taken from the cache. False if the run exports data that rows do not
    /// contain.
    pub(super) reuses_rows: bool,
    pub(super) export: &'a MetricsExport,
    pub(super) shown: &'a Progress,
    /// Number of rows taken from the cache.
    pub(super) reused: AtomicUsize,
    /// Computed rows that ended with an error, with the reason.
    pub(super) errors: Mutex<Vec<String>>,
    /// The last error from writing a row to the cache.
    pub(super) write_error: Mutex<Option<String>>,
}

impl<'a> RunRows<'a> {
    fn of_session(&self, at: usize) -> SessionKeys<'_> {
        self.keys.of_session(&self.plan.scenarios[at], &self.listed[at].content)
    }

    fn key(&self, keys: &SessionKeys<'_>, v: &Variant<'_>) -> String {
        let named = self.plan.names_seeds(v.summariser);
        keys.pair(v.spec, v.model, v.summariser, v.seed, named)
    }

    /// Returns whether the cached row of a variant requested summaries. `None` if there is no row
    /// to reuse. Rows of programs and answers of servers are never reused, because their keys do
    /// not cover them.
    fn look_up(&self, keys: &SessionKeys<'_>, v: &Variant<'_>) -> Option<bool> {
        if !self.reuses_rows || v.spec.descriptor.product.command().is_some() {
            return None;
        }
        let row = self.cache.find(&self.key(keys, v))?;
        let asked = row.run.summariser.is_some();
        let is_by_server = asked && matches!(v.summariser, Summariser::Endpoint(_));
        (!is_by_server).then_some(asked)
    }

    /// Returns the pairs of a session for which a row is missing.
    pub(super) fn todo(&self, at: usize) -> Vec<(usize, &'static Model)> {
        let keys = self.of_session(at);
        let mut pairs = self.plan.pairs_of(at);
        pairs.retain(|pair| {
            let mut found = 0;
            for v in self.plan.variants(at, *pair) {
                match self.look_up(&keys, &v) {
                    None => return true,
                    Some(asked) => {
                        found += 1;
                        if !asked {
                            break;
                        }
                    }
                }
            }
            self.reused.fetch_add(found, Ordering::Relaxed);
            (0..found).for_each(|_| self.shown.step());
            false
        });
        pairs
    }

    /// Returns whether a row of the recording itself is missing for a model.
    pub(super) fn lacks_recorded(&self, at: usize) -> bool {
        let keys = self.of_session(at);
        let mut models = self.listed[at].recorded.iter();
        models.any(|model| self.cache.find(&keys.recorded(model)).is_none())
    }

    /// Stores the rows of the recording itself.
    pub(super) fn store_recorded(&self, at: usize, scenario: &Scenario) {
        for model in &self.listed[at].recorded {
            let key = self.of_session(at).recorded(model);
            if self.cache.find(&key).is_none()
                && let Some(run) = as_recorded(scenario, model)
            {
                self.store_row(at, &key, Row { run, ..Row::default() });
            }
        }
    }

    fn store_row(&self, at: usize, key: &str, row: Row) {
        if let Err(e) = self.cache.store(key, row, self.listed[at].is_private)
            && let Ok(mut error) = self.write_error.lock()
        {
            *error = Some(e.to_string());
        }
    }

    /// Passes the rows of a session to `take`, in the order of the results.
    pub(super) fn session(&self, at: usize, take: &mut dyn FnMut(&Row)) -> Result<(), ReportError> {
        let keys = self.of_session(at);
        let gone = |key: &str| {
            let what = format!(
                "{}: the row {key} was deleted during the run; run again",
                self.plan.scenarios[at].id
            );
            std::io::Error::new(std::io::ErrorKind::NotFound, what)
        };
        let mut get = |key: String| -> Result<bool, ReportError> {
            let row = self.cache.get(&key).ok_or_else(|| gone(&key))?;
            take(&row);
            Ok(row.run.summariser.is_some())
        };
        let mut pairs = self.plan.pairs_of(at);
        let label = |k: usize| self.plan.specs[k].label();
        pairs.sort_by(|(a, m), (b, n)| {
            natural::order(&label(*a), &label(*b)).then_with(|| m.name.cmp(&n.name))
        });
        for pair in pairs {
            for v in self.plan.variants(at, pair) {
                if !get(self.key(&keys, &v))? {
                    break;
                }
            }
        }
        // A session that changed during the run has no row of the recording.
        for model in &self.listed[at].recorded {
            let key = keys.recorded(model);
            if self.cache.find(&key).is_some() {
                get(key)?;
            }
        }
        Ok(())
    }

    /// Returns the sessions of this run, sorted by id.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.plan.scenarios.len()).filter(|at| self.plan.is_here(*at)).collect();
        order.sort_by(|a, b| self.plan.scenarios[*a].id.cmp(&self.plan.scenarios[*b].id));
        order
    }

    /// Writes the trace lines of all rows, in the order of the results.
    pub(super) fn write_trace(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        for at in self.order() {
            let mut written = Ok(());
            let read = self.session(at, &mut |row| {
                if written.is_ok() {
                    written = row.trace.iter().try_for_each(|line| writeln!(out, "{line}"));
                }
            });
            written?;
            read.map_err(std::io::Error::other)?;
        }
        Ok(())
    }
}

impl Taker for RunRows<'_> {
    fn cached(&self, variant: Variant<'_>) -> Option<bool> {
        let asked = self.look_up(&self.of_session(variant.at), &variant)?;
        self.reused.fetch_add(1, Ordering::Relaxed);
        self.shown.step();
        Some(asked)
    }

    fn take(&self, variant: Variant<'_>, row: Replayed) {
        self.export.add(&row);
        let timing = timing(&row);
        let key = self.key(&self.of_session(variant.at), &variant);
        let (run, trace) = (row.record, row.trace);
        if run.status == Status::Error
            && let Ok(mut errors) = self.errors.lock()
        {
            let why = run.error.as_deref().unwrap_or("no reason was given");
            errors.push(format!("{} × {}: {why}", run.scenario.id, run.strategy.label));
        }
        self.store_row(variant.at, &key, Row { run, trace, timing });
        self.shown.step();
    }
}

impl Rows for RunRows<'_> {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        for at in self.order() {
            let mut rows: Vec<RunRecord> = Vec::new();
            self.session(at, &mut |row| rows.push(row.run.clone()))?;
            sort_runs(&mut rows);
            take(&with_savings(rows))?;
        }
        Ok(())
    }
}

/// Returns the wall-clock times of a row for `timings.json`. They are not part of the results,
/// which do not depend on the machine.
fn timing(replayed: &Replayed) -> serde_json::Value {
    let r = &replayed.record;
    let ms = replayed.took.as_millis() as u64;
    let load = |l: &Loading| {
        serde_json::json!({
            "restart": l.restart, "format": l.format, "load_us": l.took.as_micros() as u64
        })
    };
    let loads: Vec<serde_json::Value> = replayed.loadings.iter().map(load).collect();
    let mut row = serde_json::json!({
        "scenario": r.scenario.id, "strategy": r.strategy.label, "model": r.model,
        "summariser": r.summariser, "ms": ms,
    });
    if !loads.is_empty() {
        row["resume"] = loads.into();
    }
    if let Some(seed) = r.seed {
        row["seed"] = seed.into();
    }
    row
}
