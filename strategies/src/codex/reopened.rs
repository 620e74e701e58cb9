//! A rollout on disk, reopened: the contents of the resumed session by the rules of the version
//! that wrote it (docs/sources/codex.md §4).

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use ctxbench_core::tokens::o200k;
use ctxbench_kit::rollout::{
    Payload, Record, Rollout, RolloutError, RolloutEvent, RolloutItem, SessionMeta, numbered,
    surviving,
};
use serde::Serialize;
use serde_json::Value;

use super::rollout::{prompt, resume};
use super::rules::Release;

/// Token budget for the user's messages when a compaction is repeated (docs/sources/codex.md §1.4).
const USER_MESSAGE_TOKENS: u64 = 20_000;

/// State of a reopened session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reopened {
    pub session: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// The observed version with the rules for reopening it.
    pub rules: &'static str,
    /// Number of lines by type.
    pub lines: BTreeMap<String, u64>,
    /// Descriptions of the unreadable lines.
    pub unreadable: Vec<String>,
    /// Number of compactions in the file, including those that were taken back.
    pub compactions: u64,
    /// The compaction from which the session continues.
    pub base: Option<Base>,
    /// Number of lines that were taken back.
    pub taken_back: u64,
    /// Contents of the next request, in order.
    pub items: Vec<ReopenedItem>,
    /// Number of stored commits of the working tree, which are never shown.
    pub ghosts: u64,
    /// Tokens in use at the last count; `None` if no line contains it.
    pub in_use: Option<u64>,
    /// Compaction threshold in tokens: 90 % of the window, of which the program reports 95 %.
    /// `None` if no line states the window, and for 0.63, which has no limit by default.
    pub limit: Option<u64>,
}

/// A compaction in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Base {
    /// Line number, from 1.
    pub line: usize,
    /// True if the line contains the new history. Otherwise the compaction is repeated.
    pub whole: bool,
}

/// An item as the next request shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReopenedItem {
    /// `user`, `assistant`, `developer`, `context`, `summary`, `call`, `output`, `reasoning` or the
    /// type that the file names.
    pub kind: String,
    pub text: String,
    /// Number of o200k tokens of the text; encrypted content is not counted.
    pub tokens: u64,
}

impl Reopened {
    /// Reads a rollout and resumes it.
    pub fn read(path: &Path) -> Result<Reopened, RolloutError> {
        Ok(Self::from_rollout(&Rollout::read(path)?))
    }

    pub fn from_rollout(rollout: &Rollout) -> Reopened {
        let meta = rollout.lines.iter().find_map(|l| match &l.payload {
            Payload::SessionMeta(m) => Some(m.clone()),
            _ => None,
        });
        let meta = meta.unwrap_or_else(SessionMeta::default);
        let release = release(&meta.cli_version);
        let summaries: HashSet<&str> = compactions(rollout).map(|c| c.message.as_str()).collect();
        let is_summary = |text: &str| summaries.contains(text);
        let context = context(rollout);
        let resumed = resume(release, rollout, &context, is_summary, USER_MESSAGE_TOKENS);
        let ghosts = resumed.items.iter().filter(|i| !i.in_prompt()).count() as u64;
        let (base, taken_back) = base(rollout);
        Reopened {
            session: meta.id,
            version: meta.cli_version,
            rules: rules(release),
            lines: kinds(rollout),
            unreadable: rollout.unreadable.clone(),
            compactions: compactions(rollout).count() as u64,
            base,
            taken_back,
            items: prompt(&resumed.items).iter().map(|i| reopened_item(i, &is_summary)).collect(),
            ghosts,
            in_use: resumed.counted.map(|c| c.last),
            limit: window(rollout)
                .filter(|_| release != Release::V063)
                .map(|w| w / 10 * 9 + w % 10 * 9 / 10),
        }
    }

    /// Returns the total tokens of all items.
    pub fn tokens(&self) -> u64 {
        self.items.iter().map(|i| i.tokens).sum()
    }

    /// Returns true if the first turn begins with a compaction. `None` if a figure is missing.
    pub fn compacts(&self) -> Option<bool> {
        Some(self.in_use? >= self.limit?)
    }
}

/// Returns the rules of a version. A version between two observed ones gets the older rules,
/// because a newer file contains everything that these need.
fn release(version: &str) -> Release {
    let minor = version.strip_prefix("0.").and_then(|rest| rest.split('.').next()?.parse().ok());
    match minor {
        Some(0_u32..104) => Release::V063,
        Some(104..169) => Release::V104,
        _ => Release::V169,
    }
}

/// Returns the name of the observed version.
fn rules(release: Release) -> &'static str {
    match release {
        Release::V063 => "0.63",
        Release::V104 => "0.104",
        Release::V169 => "0.169",
    }
}

fn compactions(rollout: &Rollout) -> impl Iterator<Item = &ctxbench_kit::rollout::Compacted> {
    rollout.lines.iter().filter_map(|l| match &l.payload {
        Payload::Compacted(c) => Some(c),
        _ => None,
    })
}

/// Returns the items that the program showed before the first user message.
fn context(rollout: &Rollout) -> Vec<RolloutItem> {
    let items = rollout.lines.iter().filter_map(|l| match &l.payload {
        Payload::ResponseItem(i) => Some(i),
        _ => None,
    });
    let mine =
        |i: &&RolloutItem| matches!(i, RolloutItem::Message { role, .. } if role != "assistant");
    items.take_while(|i| !i.is_user()).filter(mine).cloned().collect()
}

/// Returns the compaction from which the session continues, and the number of lines taken back.
fn base(rollout: &Rollout) -> (Option<Base>, u64) {
    let (places, log): (Vec<usize>, Vec<Record<RolloutItem>>) =
        numbered(&rollout.lines).into_iter().unzip();
    let kept = surviving(&log);
    let newest = |whole: bool| {
        let is = |i: &&usize| match &log[**i] {
            Record::Compacted { replacement, .. } => replacement.is_some() == whole,
            _ => false,
        };
        kept.iter().rev().find(is).map(|i| Base { line: places[*i] + 1, whole })
    };
    let back = log.iter().filter(|r| !matches!(r, Record::RolledBack { .. })).count() - kept.len();
    // A compaction after a complete one is repeated on top of it.
    (newest(true).into_iter().chain(newest(false)).max_by_key(|b| b.line), back as u64)
}

/// Returns the window of the newest line that states one, in tokens. The reported number is 95 % of
/// it (docs/sources/codex.md §1.2).
fn window(rollout: &Rollout) -> Option<u64> {
    let reported = |payload: &Payload| match payload {
        Payload::EventMsg(RolloutEvent::TaskStarted { model_context_window }) => {
            model_context_window.as_u64()
        }
        Payload::EventMsg(RolloutEvent::TokenCount(t)) => t.info.as_ref()?.model_context_window,
        _ => None,
    };
    let usable = rollout.lines.iter().rev().find_map(|l| reported(&l.payload))?;
    Some(usable.saturating_mul(100).div_ceil(95))
}

fn kinds(rollout: &Rollout) -> BTreeMap<String, u64> {
    let mut out = BTreeMap::new();
    for l in &rollout.lines {
        let kind = match &l.payload {
            Payload::SessionMeta(_) => "session_meta",
            Payload::ResponseItem(_) => "response_item",
            Payload::Compacted(_) => "compacted",
            Payload::TurnContext(_) => "turn_context",
            Payload::EventMsg(_) => "event_msg",
            Payload::WorldState(_) => "world_state",
            Payload::TokenUsageRecord(_) => "token_usage_record",
        };
        *out.entry(kind.to_string()).or_default() += 1;
    }
    out
}

fn reopened_item(item: &RolloutItem, is_summary: &dyn Fn(&str) -> bool) -> ReopenedItem {
    let text = |v: &Value| match v {
        Value::String(t) => t.clone(),
        other => other.to_string(),
    };
    let (kind, text) = match item {
        RolloutItem::Message { role, .. } => {
            let said = item.text().unwrap_or_default();
            let kind = match role.as_str() {
                "user" if is_summary(&said) => "summary",
                "user" if !item.is_user() => "context",
                other => other,
            };
            (kind.to_string(), said)
        }
        RolloutItem::Reasoning { summary, .. } => {
            let list = summary.as_array().into_iter().flatten();
            let texts: Vec<&str> = list.filter_map(|s| s.get("text")?.as_str()).collect();
            ("reasoning".into(), texts.join("\n"))
        }
        RolloutItem::FunctionCall { name, arguments, .. } => {
            ("call".into(), format!("{name} {arguments}"))
        }
        RolloutItem::FunctionCallOutput { output, .. } => ("output".into(), text(output)),
        RolloutItem::Compaction { .. } => ("compaction".into(), String::new()),
        RolloutItem::GhostSnapshot { .. } => ("ghost_snapshot".into(), String::new()),
        RolloutItem::Other(v) => {
            let kind = v.get("type").and_then(Value::as_str).unwrap_or("unknown");
            let told = ["input", "output", "action"].iter().find_map(|k| v.get(*k));
            (kind.into(), told.map(text).unwrap_or_default())
        }
    };
    ReopenedItem { tokens: o200k(&text), kind, text }
}

#[cfg(test)]
#[path = "reopened_tests.rs"]
mod tests;
