//! What a team needs of a shared limit of tokens per minute, computed from the request times of
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ctxbench_core::session::Millis;
use ctxbench_core::strategy::Standing;
use ctxbench_kit::monitor::{Ask, Burst, RateLimit, burst, needed, recommended};
use ctxbench_reports::record::{RequestRecord, RequestStatus, RunRecord, Status};

/// A team on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Team {
    /// Users, each with a session of its own.
    pub users: u64,
    /// Tokens per minute of all together; `None` = the upper recommendation for each.
    pub tpm: Option<u64>,
}

/// Starts spread over this long, ms: an ordinary morning beside a workshop where all start at once.
const SPREAD_MS: Millis = 3_600_000;

impl Team {
    /// The limit shared by all.
    pub fn limit(&self) -> RateLimit {
        let tpm =
            self.tpm.unwrap_or_else(|| self.users.saturating_mul(recommended(self.users).tpm_high));
        RateLimit { tpm, rpm: None }
    }

    fn stagger(&self) -> Millis {
        SPREAD_MS / self.users.max(1)
    }
}

/// Requests of a run as a limit sees them, in the order in which they were sent: input that the
/// cache did not serve, and output, at the size that they would have without the scenario's scale.
/// Refused requests count nothing.
fn asks(run: &RunRecord) -> Vec<Ask> {
    let scale = if run.scenario.scale > 0.0 { run.scenario.scale } else { 1.0 };
    let counted = |r: &RequestRecord| {
        ((r.input_tokens.saturating_sub(r.cache_read) + r.output_tokens) as f64 / scale).round()
            as u64
    };
    let mut all: Vec<Ask> = run
        .requests
        .iter()
        .filter(|r| r.status == RequestStatus::Ok)
        .map(|r| Ask { at_ms: r.at_ms, tokens: counted(r) })
        .collect();
    all.sort_by_key(|a| a.at_ms);
    all
}

/// Sessions per strategy and model, and per summariser where there are several; who asked for no
/// summary counts under each.
fn rows(runs: &[RunRecord]) -> Vec<(String, String, Vec<Vec<Ask>>)> {
    let mut groups: BTreeMap<(&str, &str), Vec<&RunRecord>> = BTreeMap::new();
    for r in runs.iter().filter(|r| {
        r.status != Status::NotApplicable && r.strategy.standing != Standing::Hypothetical
    }) {
        groups.entry((&r.strategy.label, &r.model)).or_default().push(r);
    }
    let mut out = Vec::new();
    for ((strategy, model), group) in groups {
        let summarisers: BTreeSet<&str> =
            group.iter().filter_map(|r| r.summariser.as_deref()).collect();
        let sessions = |of: Option<&str>| -> Vec<Vec<Ask>> {
            let ours = group.iter().filter(|r| {
                of.is_none() || r.summariser.is_none() || r.summariser.as_deref() == of
            });
            ours.map(|r| asks(r)).filter(|a| !a.is_empty()).collect()
        };
        if summarisers.len() < 2 {
            out.push((strategy.to_string(), model.to_string(), sessions(None)));
        } else {
            out.extend(
                summarisers
                    .iter()
                    .map(|s| (format!("{strategy} ({s})"), model.to_string(), sessions(Some(s)))),
            );
        }
    }
    out
}

/// A section of the report: per strategy and model, what a team needs in which each user works on
/// one of the sessions of the runs.
pub fn team_section(runs: &[RunRecord], team: Team) -> String {
    let rows = rows(runs);
    let (limit, band) = (team.limit(), recommended(team.users));
    let mut out = format!("Team of {}: tokens per minute\n\n", team.users);
    let _ = writeln!(
        out,
        "Recommended: {} to {} per user, {} to {} for all. Limit here: {}. Each user works on one \
         of the sessions, in turn; input that the\n\
         prompt cache served does not count, and a scenario's scale is undone. \"At once\" = all \
         begin together; \"in an hour\" = their\n\
         starts are spread over one. Needed: over the minutes in which anybody asks. Refused: \
         requests refused at least once.\n",
        thousands(band.tpm_low),
        thousands(band.tpm_high),
        thousands(band.tpm_low.saturating_mul(team.users)),
        thousands(band.tpm_high.saturating_mul(team.users)),
        thousands(limit.tpm),
    );
    out += "| strategy | model | starts | needed p50 | needed p95 | p95 of limit | requests | \
        refused | too large | waiting per user | longest |\n";
    out += "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for (strategy, model, sessions) in &rows {
        for (starts, stagger) in [("at once", 0), ("in an hour", team.stagger())] {
            let Some((p50, p95)) = needed(sessions, team.users, stagger) else { continue };
            let b = burst(sessions, team.users, stagger, limit);
            out += &row(strategy, model, starts, (p50, p95), &b, team, limit);
        }
    }
    out
}

fn row(
    strategy: &str,
    model: &str,
    starts: &str,
    (p50, p95): (u64, u64),
    b: &Burst,
    team: Team,
    limit: RateLimit,
) -> String {
    let share = 100.0 * p95 as f64 / limit.tpm.max(1) as f64;
    format!(
        "| {strategy} | {model} | {starts} | {} | {} | {share:.0} % | {} | {} | {} | {} | {} |\n",
        thousands(p50),
        thousands(p95),
        b.requests,
        b.held,
        b.never,
        seconds(b.waited_ms / team.users.max(1)),
        seconds(b.longest_ms),
    )
}

fn seconds(ms: Millis) -> String {
    format!("{:.1} s", ms as f64 / 1_000.0)
}

/// 30012 as `30,012`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
