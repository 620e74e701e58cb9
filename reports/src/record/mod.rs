//! Measured records: plain data that replay writes and reports read. Nothing in here depends on the
//! machine or the wall clock.

mod agreement;
mod background;
mod compactions;
mod delegation;
mod digest;
mod facts;
mod integrity;
mod pieces;
mod restarts;
pub mod yardstick;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use ctxbench_core::fact::{FactKind, Match};
use ctxbench_core::request::{ErrorKind, Phase, Purpose};
use ctxbench_core::session::Millis;
use ctxbench_core::strategy::Standing;

pub use agreement::{Agreement, Beside, Two, TwoFigures, TwoRequests};
pub use background::{BackgroundRecord, Fate};
pub use compactions::{BlockText, BreakEven, CompactionRecord, Portion, SUMMARY_TEXT};
pub use delegation::Delegation;
pub use digest::Digest;
pub use facts::{EXCERPT, FactLife, FactMove, FactRecord, Place};
pub use integrity::{IntegrityFailure, Rule};
pub use restarts::{CodeRewind, KeptBy, ResumeFile, ResumeRecord, RewindRecord};

/// Version of `results.json`; a file of another version is refused.
pub const RESULTS_VERSION: u32 = 1;

/// Everything one `run` measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`RESULTS_VERSION`].
    pub version: u32,
    /// Name and version of the program that wrote it.
    pub generator: String,
    /// Assumptions of the models behind modelled numbers, by name.
    pub assumptions: BTreeMap<String, String>,
    /// One per scenario × strategy × model × summariser × seed, in sorted order.
    pub runs: Vec<RunRecord>,
}

/// One strategy on one session with one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The session.
    pub scenario: ScenarioInfo,
    /// The strategy.
    pub strategy: StrategyInfo,
    /// Model name.
    pub model: String,
    /// Who wrote its summaries; `None` = none was asked for, so that the row is the same under
    /// every summariser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summariser: Option<String>,
    /// Seed, where the run was repeated with several; `None` = it was not, or nothing in it is
    /// seeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Context window used, tokens, scale applied.
    pub window: u64,
    /// How it ended.
    pub status: Status,
    /// What went wrong, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A remark for the table, such as "never triggered".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What it is held against, where it is our implementation of an agent that was driven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// The figures of one row.
    pub summary: Summary,
    /// Every request, those of subagents after those of the main conversation, each in order.
    pub requests: Vec<RequestRecord>,
    /// Every compaction of the main conversation in order.
    pub compactions: Vec<CompactionRecord>,
    /// Every background summary in the order in which they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundRecord>,
    /// Every (fact, need) pair.
    pub facts: Vec<FactRecord>,
    /// What became of every fact of the session, with short texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lives: Vec<FactLife>,
    /// Every point at which a strategy decided that the context was too large.
    pub triggers: Vec<TriggerRecord>,
    /// Hard failures.
    pub integrity: Vec<IntegrityFailure>,
    /// What the instructions of a manual compaction did; `None` where the session or the product
    /// has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steering: Option<Steering>,
    /// Every rewind of the session in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewinds: Vec<RewindRecord>,
    /// What became of the session at each restart, a row per format of the product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<ResumeRecord>,
    /// Every subagent in the order in which they begin in the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegation: Vec<Delegation>,
    /// What is left of the requests and compactions of a row that is held without them; in no file.
    #[serde(skip)]
    pub digest: Option<Box<Digest>>,
}

/// The session of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioInfo {
    /// Short name.
    pub id: String,
    /// A line for people.
    pub title: String,
    /// Multiplies the window and every absolute token constant.
    pub scale: f64,
    /// Why it is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Its tags; recordings have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Recorded rather than scripted.
    pub recorded: bool,
    /// The product that was recorded, where the recording holds the provider's counters: the name
    /// of its format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// It tests one mechanism and holds too few facts to compare strategies by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mechanism: bool,
    /// What an importer or loader had to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The strategy of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrategyInfo {
    /// Name, with the settings that were given: `codex:auto_compact_limit=90000`.
    pub label: String,
    /// The settings that were given, as in the label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<String, String>,
    /// Bare name.
    pub name: String,
    /// Version of the program that it follows.
    pub version: String,
    /// The program that ran as it is, name and version; none = what is modelled here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// A whole agent was driven: its requests are its own, and no waiting is modelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub driven: bool,
    /// All settings with their values, scale applied.
    pub settings: BTreeMap<String, String>,
    /// A product, a control row, what cannot exist in reality, or what was recorded: flags in
    /// files.
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

/// The same run with and without the instructions that the user gave with manual compactions
/// (`/compact focus on …`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steering {
    /// (fact, need) pairs that the instructions ask for.
    pub asked: u64,
    /// Retention of these with the instructions, per cent.
    pub asked_with_pct: f64,
    /// And without them.
    pub asked_without_pct: f64,
    /// Pairs that they do not ask for, needed after the same compaction.
    pub others: u64,
    /// Retention of these with the instructions, per cent; `None` = there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_with_pct: Option<f64>,
    /// And without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_without_pct: Option<f64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every recorded step was taken.
    #[default]
    Completed,
    /// The window was full and nothing made room.
    Overflow,
    /// The strategy gave up.
    Failed,
    /// It went on without progress.
    Livelock,
    /// The session or the machinery failed.
    Error,
    /// The pair cannot exist.
    NotApplicable,
}

impl Status {
    /// The word in files.
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

/// The figures of one row. `None` = not applicable or unknown, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Recorded steps taken.
    pub steps_completed: u64,
    /// Recorded steps of the session.
    pub steps_total: u64,
    /// Requests of every purpose.
    pub requests: u64,
    /// Compactions of every kind.
    pub compactions: u64,
    /// Requests that wrote summaries, provider-side ones included.
    pub summary_calls: u64,
    /// All input tokens billed, cached ones included.
    pub input_tokens: u64,
    /// Of these, read from the prompt cache.
    pub cache_read_tokens: u64,
    /// Of these, written to the prompt cache.
    pub cache_write_tokens: u64,
    /// Output tokens billed.
    pub output_tokens: u64,
    /// Largest prompt of a normal request, tokens.
    pub peak_context_tokens: u64,
    /// `1 − input tokens / those of reference`, per cent.
    pub saved_pct: Option<f64>,
    /// USD, summary calls included.
    pub cost_usd: f64,
    /// USD with the visible output where the counted one is a stub; only of what was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_estimate_usd: Option<f64>,
    /// `1 − cost / that of reference`, per cent.
    pub cost_saved_pct: Option<f64>,
    /// Σ common prefix ÷ Σ tokens of the earlier request; 1 = append-only.
    pub prefix_stability: Option<f64>,
    /// Tokens that had to be written again because the prefix before them changed or expired.
    pub invalidated_tokens: u64,
    /// Cache reads ÷ all input tokens.
    pub cache_read_ratio: Option<f64>,
    /// Waiting caused by compaction, ms, modelled.
    pub blocked_ms: u64,
    /// Virtual length of the session, ms.
    pub total_ms: u64,
    /// Share of the needs that ask for memory whose fact stood in the context, per cent.
    #[serde(default)]
    pub needs_kept_pct: Option<f64>,
    /// Share of these needs at which a request had removed or changed what showed the fact last,
    /// per cent.
    #[serde(default)]
    pub exposed_pct: Option<f64>,
    /// Share of the exposed needs whose fact stood in the context all the same, per cent.
    #[serde(default)]
    pub kept_exposed_pct: Option<f64>,
    /// Of the facts that compactions took out of the verbatim context, the share that the summary
    /// or restoration carries, per cent.
    pub summary_retention_pct: Option<f64>,
    /// Tokens of modelled re-reads, as the product cut them.
    pub reread_tokens: u64,
    /// Requests beyond the recorded path.
    pub extra_requests: u64,
    /// Times the provider refused a prompt as too long.
    pub provider_overflows: u64,
    /// Times a person had to step in.
    pub user_interventions: u64,
    /// Mean of believed − billed tokens at the triggers.
    pub trigger_error_tokens: Option<f64>,
    /// Hard failures.
    pub integrity_failures: u64,
}

/// Name of the row of what was recorded.
pub const AS_RECORDED: &str = "as-recorded";

impl RunRecord {
    /// How far a row can be trusted: `recorded` = the provider's counters; `real` = a program that
    /// ran as it is, on the simulated provider; `model` = our implementation of a product on the
    /// same.
    pub fn trust(&self) -> &'static str {
        match self.strategy.standing {
            Standing::Recorded => "recorded",
            _ if self.strategy.program.is_some() => "real",
            _ => "model",
        }
    }

    /// Share of (fact, need) pairs with a fact that was in the context at the need, per cent;
    /// `kind` selects pairs of one kind of fact. Pairs that no strategy could have kept do not
    /// count. `None` when no pair is left, or when the row is a [digest](Self::digested).
    pub fn retention_pct(&self, kind: Option<FactKind>) -> Option<f64> {
        let counts = |f: &&FactRecord| !f.undelivered && kind.is_none_or(|k| f.kind == k);
        let pairs: Vec<&FactRecord> = self.facts.iter().filter(counts).collect();
        let kept = pairs.iter().filter(|f| f.found > Match::Absent).count();
        (!pairs.is_empty()).then(|| 100.0 * kept as f64 / pairs.len() as f64)
    }

    /// A product, and no second row of one that is there itself.
    pub fn is_product(&self) -> bool {
        self.strategy.standing == Standing::Contender && self.beside.is_none()
    }

    /// A product, on a pair that can exist.
    pub fn is_contender(&self) -> bool {
        self.is_product() && self.status != Status::NotApplicable
    }

    /// Hard failures, by whichever of the two counts is larger.
    pub fn broken_rules(&self) -> u64 {
        self.summary.integrity_failures.max(self.integrity.len() as u64)
    }

    /// Went through to the end and broke no rule: its figures measure the whole session as it could
    /// have happened. A run that died measures less work, and one that broke a rule measures what no
    /// provider would have answered.
    pub fn is_whole(&self) -> bool {
        self.status == Status::Completed && self.broken_rules() == 0
    }

    /// Whether its session may decide who is better. Every ranking asks this: best values, ranks
    /// over sessions, differences over sessions. A test of a mechanism may not; what it shows is
    /// whether that mechanism holds.
    pub fn is_evidence(&self) -> bool {
        !self.scenario.mechanism
    }

    /// Only such rows can be best. A row that never compacted shows what the others are compared
    /// with, and is no winner among them.
    pub fn can_win(&self) -> bool {
        let compacted = self.summary.compactions > 0;
        self.is_evidence() && self.is_contender() && self.is_whole() && compacted
    }
}

fn is_nothing(usd: &f64) -> bool {
    *usd == 0.0
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// One request: the numbers of a trace line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// Number in the run, from 0; those of the main conversation come first, then those of each
    /// subagent.
    pub seq: u64,
    /// The subagent whose window it was made in; `None` = the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// Why it was made.
    pub purpose: Purpose,
    /// When, for summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Model asked.
    pub model: Arc<str>,
    /// Recorded step that it was made for, from 0; steps before the first reply are 0.
    pub step: u64,
    /// Beyond the recorded path.
    pub extra: bool,
    /// All input tokens billed.
    pub input_tokens: u64,
    /// Of these, read from the cache.
    pub cache_read: u64,
    /// Of these, written to the cache.
    pub cache_write: u64,
    /// Of these, for an hour instead of five minutes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Output tokens billed.
    pub output_tokens: u64,
    /// Size of the prompt shown, tokens; differs from `input_tokens` when the provider compacts on
    /// its side.
    pub context_tokens: u64,
    /// USD.
    pub cost_usd: f64,
    /// Of this, for a compaction that the provider made inside the request, USD.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub compaction_usd: f64,
    /// Input and output of that compaction, tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compaction_tokens: u64,
    /// Of the latency, for that compaction, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub compaction_ms: Millis,
    /// Virtual start, ms.
    pub at_ms: Millis,
    /// Modelled latency, ms; of a request that was refused, the time until the refusal came.
    pub latency_ms: Millis,
    /// Tokens that the prompt shares at its beginning with the request of the same conversation
    /// before it.
    pub common_prefix_tokens: u64,
    /// Tokens of the request before that were shown again and not served by the cache.
    pub invalidated_tokens: u64,
    /// Of these, because the cache's lifetime was over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalidated_expired_tokens: u64,
    /// Of these, because something before them had changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invalidated_changed_tokens: u64,
    pub status: RequestStatus,
}

/// Whether a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    Ok,
    #[serde(untagged)]
    Failed(ErrorKind),
}

/// The name of a unit variant in files.
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
    /// What the strategy believed, tokens.
    pub believed: u64,
    /// What the mock would bill, tokens.
    pub billed: u64,
    /// The limit that was reached, tokens.
    pub limit: u64,
    /// Name of the check.
    pub check: String,
}
