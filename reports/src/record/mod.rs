//! Measured records: plain data that a replay writes and reports read. They do not depend on the
//! machine or the wall clock.

mod agreement;
mod compactions;
mod delegation;
mod digest;
mod facts;
mod integrity;
mod restarts;
pub mod yardstick;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use ctxbench_core::Millis;
use ctxbench_core::request::{ErrorKind, Phase, Purpose};
use ctxbench_core::strategy::Standing;
use ctxbench_session::fact::{FactKind, Match};

pub use agreement::{Agreement, Counterpart, Two, TwoFigures, TwoRequests};
pub use compactions::{
    BackgroundRecord, BlockText, BreakEven, CompactionRecord, Fate, Portion, SUMMARY_TEXT,
};
pub use delegation::Delegation;
pub use digest::Digest;
pub(crate) use facts::wilson;
pub use facts::{EXCERPT, FactLife, FactMove, FactPlace, FactRecord, Recall};
pub use integrity::{IntegrityFailure, Rule};
pub use restarts::{CodeRewind, KeptBy, ResumeFile, ResumeRecord, RewindRecord};

/// Version of `results.json`; readers refuse a file of any other version.
pub const RESULTS_VERSION: u32 = 1;

/// All results of one `run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of the format: [`RESULTS_VERSION`].
    pub version: u32,
    /// Name and version of the program that wrote the file.
    pub generator: String,
    /// Assumptions of the models that produce modelled numbers, by name.
    pub assumptions: BTreeMap<String, String>,
    /// One row per scenario × strategy × model × summariser × seed, in sorted order.
    pub runs: Vec<RunRecord>,
}

/// One strategy on one session with one model.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub scenario: ScenarioInfo,
    pub strategy: StrategyInfo,
    pub model: String,
    /// Name of the summariser. `None` if no summary was requested; the row is then valid for every
    /// summariser.
    pub summariser: Option<String>,
    /// Seed of a run that was repeated with several seeds. `None` if it was not repeated or does
    /// not depend on the seed.
    pub seed: Option<u64>,
    /// Context window used, tokens, scale applied.
    pub window: u64,
    pub status: Status,
    /// Reason of a failure, for people.
    pub error: Option<String>,
    /// A remark for the table, such as "never triggered".
    pub note: Option<String>,
    /// The row of the real agent that this row of our implementation is compared with.
    pub beside: Option<Counterpart>,
    /// Figures of the row.
    pub summary: Summary,
    /// Every request, those of subagents after those of the main conversation, each in order.
    pub requests: Vec<RequestRecord>,
    /// Every compaction of the main conversation in order.
    pub compactions: Vec<CompactionRecord>,
    /// Every background summary, in the order of their requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundRecord>,
    /// Every (fact, need) pair.
    pub facts: Vec<FactRecord>,
    /// History of every fact of the session, with short excerpts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lives: Vec<FactLife>,
    /// Every point at which a strategy decided that the context was too large.
    pub triggers: Vec<TriggerRecord>,
    pub integrity: Vec<IntegrityFailure>,
    /// Every rewind of the session in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewinds: Vec<RewindRecord>,
    /// State of the session after each restart, a row per session format of the product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<ResumeRecord>,
    /// Every subagent, in the order in which they begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegation: Vec<Delegation>,
    /// Totals that replace the requests and compactions of a row without them. Never stored in a
    /// file.
    #[serde(skip)]
    pub digest: Option<Box<Digest>>,
}

/// The session of a run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioInfo {
    pub id: String,
    /// Hash of the session with its facts; empty for a session that did not run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Title in one line.
    pub title: String,
    /// Factor of the window and of all absolute token constants.
    pub scale: f64,
    /// Purpose of the scenario.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Tags of the scenario; recordings have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// True for a recorded session, false for a scripted one.
    pub recorded: bool,
    /// Recorded product (name of its format), if the recording contains the provider's counters.
    pub product: Option<String>,
    /// True if the session tests one mechanism and has too few facts to compare strategies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mechanism: bool,
    /// Warnings of an importer or loader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Session of the run that this one is counted as in comparisons, because they share calls or
    /// are copies. `None` = it counts itself.
    pub counted_as: Option<String>,
    /// True if the recording begins within a conversation, most of which its file lacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
}

impl ScenarioInfo {
    /// Returns why comparisons leave the session out; `None` = they count it.
    pub fn not_compared(&self) -> Option<&'static str> {
        match self {
            _ if self.counted_as.is_some() => Some("repeating another one"),
            _ if self.continues => Some("continuing a conversation that its file lacks"),
            _ => self.mechanism.then_some("testing one mechanism"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrategyInfo {
    /// Name and given settings: `codex:auto_compact_limit=90000`.
    pub label: String,
    /// The given settings, as in the label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<String, String>,
    /// Name without settings.
    pub name: String,
    /// Version of the modelled program.
    pub version: String,
    /// Name and version of a real program that ran unmodified; `None` for a modelled strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Command of this program, with the options that change it; those of several are joined by ` + `.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// True if a whole agent was driven: it makes its own requests, and no waiting is modelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driven: bool,
    /// All settings with their values, scale applied.
    pub settings: BTreeMap<String, String>,
    /// Product, control, hypothetical or recorded row; stored as flags.
    #[serde(flatten, with = "standing")]
    pub standing: Standing,
}

mod standing {
    use ctxbench_core::strategy::Standing;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Flags {
        hypothetical: bool,
        control: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        recorded: bool,
    }

    pub(super) fn serialize<S: Serializer>(s: &Standing, to: S) -> Result<S::Ok, S::Error> {
        let is = |standing| *s == standing;
        Flags {
            hypothetical: is(Standing::Hypothetical),
            control: is(Standing::Control),
            recorded: is(Standing::Recorded),
        }
        .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Standing, D::Error> {
        Ok(match Flags::deserialize(from)? {
            Flags { hypothetical: true, .. } => Standing::Hypothetical,
            Flags { control: true, .. } => Standing::Control,
            Flags { recorded: true, .. } => Standing::Recorded,
            _ => Standing::Contender,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every recorded step was taken.
    #[default]
    Completed,
    /// The window was full, and the strategy did not make room.
    Overflow,
    /// The strategy gave up.
    Failed,
    /// It sent requests without progress.
    Livelock,
    /// The session or the machinery failed.
    Error,
    /// The pair cannot exist.
    NotApplicable,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Overflow => "overflow",
            Status::Failed => "failed",
            Status::Livelock => "livelock",
            Status::Error => "error",
            Status::NotApplicable => "n/a",
        }
    }
}

/// Figures of one row. `None` means not applicable or unknown, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of recorded steps that were taken.
    pub steps_completed: u64,
    /// Number of recorded steps of the session.
    pub steps_total: u64,
    /// Number of requests of every purpose.
    pub requests: u64,
    /// Number of compactions of every kind.
    pub compactions: u64,
    /// Number of requests that wrote summaries, including summaries by the provider.
    pub summary_calls: u64,
    /// All input tokens billed, cached ones included.
    pub input_tokens: u64,
    /// Input tokens read from the prompt cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the prompt cache.
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    /// Largest prompt of a normal request, tokens.
    pub peak_context_tokens: u64,
    /// `1 − input tokens / those of reference`, per cent.
    pub saved_pct: Option<f64>,
    /// Cost in USD, including summary calls.
    pub cost_usd: f64,
    /// Cost in USD, with the visible output where the counted output is a stub; only for recorded
    /// rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_estimate_usd: Option<f64>,
    /// Cost in USD of the same calls with the cache of the reference; only for recorded rows whose own
    /// cache served much less or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_with_cache_usd: Option<f64>,
    /// `1 − cost / that of reference`, per cent.
    pub cost_saved_pct: Option<f64>,
    /// Σ common prefix ÷ Σ tokens of the earlier request; 1 means append-only.
    pub prefix_stability: Option<f64>,
    /// Tokens that had to be written again because the prefix before them changed or expired.
    pub invalidated_tokens: u64,
    /// Cache reads ÷ all input tokens.
    pub cache_read_ratio: Option<f64>,
    /// Waiting caused by compaction, ms, modelled.
    pub blocked_ms: u64,
    /// Virtual length of the session, ms.
    pub total_ms: u64,
    /// Share of the facts needed that the context showed, per cent.
    pub recall_pct: Option<f64>,
    /// Share of the facts needed at risk that the context showed, per cent; see
    /// [`FactRecord::is_at_risk`].
    pub recall_at_risk_pct: Option<f64>,
    /// Number of messages with needs at risk; `None` if unknown.
    pub at_risk: Option<u64>,
    /// Tokens of modelled re-reads, with the truncation of the product.
    pub reread_tokens: u64,
    /// Number of requests beyond the recorded path.
    pub extra_requests: u64,
    /// Number of prompts that the provider refused as too long.
    pub provider_overflows: u64,
    pub user_interventions: u64,
    /// Mean of believed − billed tokens at the triggers.
    pub trigger_error_tokens: Option<f64>,
    pub integrity_failures: u64,
}

/// Label of the row of recorded figures.
pub const AS_RECORDED: &str = "as-recorded";

impl RunRecord {
    /// Trust level of a row: `recorded` = the provider's counters; `real` = an unmodified program
    /// on the simulated provider; `model` = our implementation of a product on the same provider.
    pub fn trust(&self) -> &'static str {
        match self.strategy.standing {
            Standing::Recorded => "recorded",
            _ if self.strategy.program.is_some() => "real",
            _ => "model",
        }
    }

    /// Returns the histories of the facts by id.
    pub(crate) fn lives_by_fact(&self) -> BTreeMap<&str, &FactLife> {
        self.lives.iter().map(|life| (&*life.fact, life)).collect()
    }

    /// Share of (fact, need) pairs with a fact that was in the context at the need, per cent;
    /// `kind` selects pairs of one kind of fact. Pairs that no strategy could have kept do not
    /// count. `None` when no pair is left, or when the row is a [digest](Self::digested).
    pub fn pair_recall_pct(&self, kind: Option<FactKind>) -> Option<f64> {
        let counts = |f: &&FactRecord| !f.undelivered && kind.is_none_or(|k| f.kind == k);
        let pairs: Vec<&FactRecord> = self.facts.iter().filter(counts).collect();
        let kept = pairs.iter().filter(|f| f.found > Match::Absent).count();
        (!pairs.is_empty()).then(|| 100.0 * kept as f64 / pairs.len() as f64)
    }

    /// Returns true for a product, except for our second row of an agent that was driven.
    pub fn is_product(&self) -> bool {
        self.strategy.standing == Standing::Contender && self.beside.is_none()
    }

    /// Returns true for a product on a pair that can exist.
    pub fn is_contender(&self) -> bool {
        self.is_product() && self.status != Status::NotApplicable
    }

    /// Number of integrity failures: the larger of the count and the list.
    pub fn broken_rules(&self) -> u64 {
        self.summary.integrity_failures.max(self.integrity.len() as u64)
    }

    /// Returns true if the run completed and broke no rule, so that its figures measure the whole
    /// session. A run that ended early measures less work, and a run that broke a rule measures
    /// requests that no provider would have answered.
    pub fn is_whole(&self) -> bool {
        self.status == Status::Completed && self.broken_rules() == 0
    }

    /// Returns true if the session may decide which strategy is better.
    pub fn is_evidence(&self) -> bool {
        self.scenario.not_compared().is_none()
    }

    /// Returns true if the row may have the best value of a metric, whether it compacted or not.
    pub fn can_win(&self) -> bool {
        self.is_evidence() && self.is_contender() && self.is_whole()
    }
}

fn is_nothing(usd: &f64) -> bool {
    *usd == 0.0
}

pub(crate) fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Figures of one request, as in a trace line.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Number in the run, from 0: the main conversation first, then each subagent.
    pub seq: u64,
    /// Subagent that made the request; `None` for the main conversation.
    pub agent: Option<Arc<str>>,
    pub purpose: Purpose,
    /// Phase of the session, for a summary.
    pub phase: Option<Phase>,
    pub model: Arc<str>,
    /// Recorded step of the request, from 0; also 0 before the first reply.
    pub step: u64,
    /// True if the request is beyond the recorded path.
    pub extra: bool,
    /// All input tokens billed; 0 if another session is billed for the request.
    pub input_tokens: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Tokens written to the cache with a lifetime of one hour instead of five minutes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Output tokens billed.
    pub output_tokens: u64,
    /// Size of the prompt, tokens. It differs from `input_tokens` if the provider compacts within
    /// the request.
    pub context_tokens: u64,
    pub cost_usd: f64,
    /// Part of the cost for a compaction that the provider made inside the request, USD.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub compaction_usd: f64,
    /// Input and output of that compaction, tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compaction_tokens: u64,
    /// Part of the latency for that compaction, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compaction_ms: Millis,
    /// Virtual start, ms.
    pub at_ms: Millis,
    /// Modelled latency, ms. For a refused request, the time until the refusal.
    pub latency_ms: Millis,
    /// Length of the common prefix with the previous request of the conversation, tokens.
    pub common_prefix_tokens: u64,
    /// Tokens of the previous request that were sent again but not read from the cache.
    pub invalidated_tokens: u64,
    /// Tokens invalidated because the cache entry had expired.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalidated_expired_tokens: u64,
    /// Tokens invalidated by a change in an earlier part of the prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalidated_changed_tokens: u64,
    pub status: RequestStatus,
}

impl RequestRecord {
    /// Returns true if the dollars of the request are not in its row: another session is billed for
    /// it, or its price is not known.
    pub fn is_unbilled(&self) -> bool {
        self.cost_usd == 0.0 && self.context_tokens > 0
    }

    /// Returns true if another session is billed for the request.
    pub fn is_billed_elsewhere(&self) -> bool {
        self.input_tokens == 0 && self.context_tokens > 0
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    #[default]
    Ok,
    #[serde(untagged)]
    Failed(ErrorKind),
}

/// Returns the name of a unit variant in files.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(s)) => s,
        _ => "n/a".into(),
    }
}

/// A point at which a strategy decided that the context was too large.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerRecord {
    /// Number of the next request.
    pub before_request: u64,
    /// Context size as estimated by the strategy, tokens.
    pub believed: u64,
    /// Context size that the simulated provider would bill, tokens.
    pub billed: u64,
    /// Limit that was reached, tokens.
    pub limit: u64,
    pub check: String,
}
