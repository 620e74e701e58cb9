//! Builds a case from the requests of a driven product.

use std::collections::HashMap;

use ctxbench_core::block::{BlockKind, Role};
use ctxbench_provider::Content;
use ctxbench_strategies::conform::record::{
    CasePiece, CaseRecording, Classification, RecordedRequest, RecordedSession, SessionReading,
    SummarySegment,
};
use serde_json::{Map, Value, json};

use super::events::{self, SentTexts};
use super::mask::Masked;
use super::rows::{self, CaseItem, UserTexts};
use crate::conform::Case;
use crate::drive::plan::Delivery;
use crate::drive::{Driven, Exchange, Purpose, words};
use crate::hash::sha256;

/// Maximum length of a text that a case contains instead of its hash, bytes.
const MAX_TEXT_BYTES: usize = 200;

/// Builds the case of a session. Returns `None` if the agent sent no request. With `resumes`, every
/// turn is a separate process.
pub(super) fn build(
    driven: &Driven,
    recording: &CaseRecording,
    version: &str,
    resumes: bool,
    name: &str,
) -> Option<Case> {
    let exchanges = super::counted(&driven.exchanges);
    let wire = exchanges.first()?.wire?;
    let prompts = exchanges.iter().filter_map(|e| e.prompt.as_ref());
    let rows: Vec<Vec<CaseItem<'_>>> =
        prompts.map(|p| rows::split(p, recording.texts_apart)).collect();
    let said = UserTexts::new(&driven.plan.moves);
    let asked: Vec<RecordedRequest<'_>> = exchanges
        .iter()
        .zip(&rows)
        .map(|(e, rows)| RecordedRequest {
            summary: e.purpose == Purpose::Summary,
            label: e.label.as_deref(),
            overflowed: e.outcome.as_ref().is_err_and(|e| e.is_overflow()),
            pieces: rows.iter().map(|r| r.piece(&said)).collect(),
        })
        .collect();
    let summaries: Vec<&str> = exchanges
        .iter()
        .filter(|e| e.purpose == Purpose::Summary)
        .filter_map(|e| e.outcome.as_ref().ok().map(words))
        .collect();
    let reading = (recording.read)(&RecordedSession {
        model: &driven.model.name,
        window: driven.window,
        max_output: driven.max_output,
        wire: wire.name(),
        notes: &driven.notes,
        told: &driven.told,
        requests: &asked,
        summaries: &summaries,
        prompts: &ends(driven),
    });
    let mut shown = sent_texts(driven, &exchanges, &rows, reading.cache_beside_input);
    for (row, sort) in rows.iter().zip(&reading.requests).flat_map(|(r, (_, s))| r.iter().zip(s)) {
        if matches!(sort, Classification::Constant(_)) {
            row.texts().iter().for_each(|t| shown.masked.constant(t));
        }
    }
    summaries.iter().for_each(|s| shown.masked.summary(s));
    let mut writer =
        CaseWriter { shown: &shown, reading: &reading, summaries, items: Items::default() };
    let requests = exchanges.iter().enumerate().map(|(i, e)| writer.request(i, e, &rows[i]));
    let requests: Vec<Value> = requests.collect();
    let fixed = writer.fixed(&exchanges, &asked);
    let items = writer.items.all;
    Some(Case {
        kind: "replay".into(),
        agent: driven.strategy.as_ref()?.descriptor.name.into(),
        version: version.into(),
        name: name.into(),
        shows: format!("The session `{name}` driven through the real program."),
        fixed,
        events: events::build(driven, &exchanges, &shown, resumes),
        settings: reading.settings.clone(),
        constants: reading.constants.clone(),
        items,
        requests,
        not_compared: vec![],
        outcome: (!reading.outcome.is_empty()).then_some(Value::Object(reading.outcome.clone())),
    })
}

/// Returns the outcome of each user message: `done` or `error`.
fn ends(driven: &Driven) -> Vec<&'static str> {
    let moves = driven.plan.moves.iter().enumerate();
    let said = moves.filter(|(_, step)| matches!(step.what, Delivery::Say(_)));
    let failed = |i: usize| driven.failures.iter().any(|(at, _)| *at == i);
    said.map(|(i, _)| if failed(i) { "error" } else { "done" }).collect()
}

/// Returns the texts that entered the history, and those of the session.
fn sent_texts<'a>(
    driven: &'a Driven,
    exchanges: &[&'a Exchange],
    rows: &[Vec<CaseItem<'a>>],
    cache_beside_input: bool,
) -> SentTexts<'a> {
    let mut masked = Masked::default();
    for r in exchanges.iter().filter_map(|e| e.outcome.as_ref().ok()) {
        r.parts.iter().filter_map(|p| p.as_text()).for_each(|t| masked.own(t));
        r.calls().for_each(|c| masked.own(&c.arguments));
    }
    let mut outputs = HashMap::new();
    for item in rows.iter().flatten().flat_map(|r| &r.items) {
        if let Content::Output { id, text, .. } = &*item.content {
            let first = *outputs.entry(&**id).or_insert(&**text);
            masked.learn(first, driven.plan.printed(id).unwrap_or_default());
        }
    }
    let mut said = HashMap::new();
    for (i, step) in driven.plan.moves.iter().enumerate() {
        let Delivery::Say(words) = &step.what else { continue };
        if words.trim().is_empty() {
            continue;
        }
        let work = |e: &&Exchange| e.purpose == Purpose::Work && e.step == i;
        let Some(first) = exchanges.iter().position(work) else { continue };
        let of_user = |r: &&CaseItem<'_>| r.kind == BlockKind::User && r.role == Role::User;
        let holds = |r: &&CaseItem<'_>| r.texts().iter().any(|t| t.contains(words.trim()));
        let found = rows[first].iter().rev().filter(of_user).find(holds);
        let Some(texts) = found.map(CaseItem::texts) else { continue };
        texts.iter().for_each(|t| masked.learn(t, words));
        said.insert(i, texts);
    }
    SentTexts { masked, said, outputs, cache_beside_input }
}

/// Distinct items of a case.
#[derive(Default)]
struct Items {
    all: Vec<Value>,
    known: HashMap<String, usize>,
}

impl Items {
    fn number(&mut self, item: Value) -> usize {
        *self.known.entry(item.to_string()).or_insert_with(|| {
            self.all.push(item);
            self.all.len() - 1
        })
    }

    /// Lists numbers as a case does, with the first and last number of a run.
    fn listed(numbers: &[usize]) -> Vec<Value> {
        let runs = numbers.chunk_by(|a, b| a + 1 == *b);
        let run = |r: &[usize]| match r {
            [one] => json!(one),
            several => json!([several[0], several[several.len() - 1]]),
        };
        runs.map(run).collect()
    }
}

struct CaseWriter<'a> {
    shown: &'a SentTexts<'a>,
    reading: &'a SessionReading,
    summaries: Vec<&'a str>,
    items: Items,
}

impl CaseWriter<'_> {
    fn request(&mut self, i: usize, e: &Exchange, rows: &[CaseItem<'_>]) -> Value {
        let none = (None, vec![]);
        let (phase, sorts) = self.reading.requests.get(i).unwrap_or(&none);
        let purpose = if e.purpose == Purpose::Summary { "summary" } else { "sample" };
        let prompt = e.prompt.as_ref();
        let tools = prompt.is_some_and(|p| p.tools.is_some());
        let mut out = json!({"purpose": purpose, "tools": tools});
        if let Some(phase) = phase {
            out["phase"] = phase.as_str().into();
        }
        if let Some(most) =
            prompt.and_then(|p| p.max_tokens).filter(|_| self.reading.limits_replies)
        {
            out["max_tokens"] = most.into();
        }
        let numbers: Vec<usize> = rows
            .iter()
            .zip(sorts)
            .map(|(row, sort)| {
                let item = self.item(row, sort);
                self.items.number(item)
            })
            .collect();
        out["items"] = Items::listed(&numbers).into();
        out
    }

    fn item(&self, row: &CaseItem<'_>, sort: &Classification) -> Value {
        let first = row.items[0];
        let mut out = Map::new();
        let mut put = |k: &str, v: Value| drop(out.insert(k.to_string(), v));
        let kind = match sort {
            Classification::Said(kind) | Classification::Constant(kind) => *kind,
            Classification::Summary { .. } | Classification::Segments(_) => BlockKind::Summary,
            Classification::Prompt { .. } => BlockKind::SummaryPrompt,
        };
        put("kind", json!(kind));
        let roleless = matches!(kind, BlockKind::Compaction | BlockKind::CompactionTrigger);
        put("role", if roleless { Value::Null } else { json!(row.role) });
        put("bytes", bytes(row));
        if let Some(less) = self.reading.numbered {
            put("msg", first.message.saturating_sub(less).into());
        }
        if row.items.iter().any(|i| i.cache.is_some()) {
            put("cache", true.into());
        }
        match &*first.content {
            Content::Call { id, name, .. } => {
                put("id", json!(id));
                put("name", json!(name));
            }
            Content::Output { id, .. } => put("id", json!(id)),
            Content::Reasoning { encrypted: Some(e), .. } => put("encrypted_bytes", e.len().into()),
            _ => {}
        }
        let text = first.text();
        match sort {
            Classification::Constant(_) => put("constant", true.into()),
            Classification::Summary { body } => {
                let body = text.get(body.clone()).unwrap_or(text);
                out.extend(self.describe_text(body));
            }
            Classification::Segments(all) => put("segments", self.segments(all)),
            Classification::Prompt { variant, transcript, prior, constant_bytes } => {
                if let Some(variant) = variant {
                    put("variant", json!(variant));
                }
                put("constant_bytes", (*constant_bytes).into());
                let t = self.shown.masked.within(transcript);
                put("transcript", json!({"bytes": t.len(), "sha256": sha256(&t)}));
                let told = match prior.as_slice() {
                    [] => Value::Null,
                    [SummarySegment::Said(text)] => self.summary(text).into(),
                    several => {
                        let bytes: usize = several.iter().map(SummarySegment::bytes).sum();
                        json!({"bytes": bytes, "segments": self.segments(several)})
                    }
                };
                put("prior_summary", told);
            }
            Classification::Said(_) if row.items.len() > 1 => {
                let parts = row.texts().into_iter().map(|t| Value::Object(self.describe_text(t)));
                put("parts", parts.collect());
            }
            Classification::Said(_) => match &*first.content {
                Content::Compaction { text, opaque: Some(o) } if text.is_empty() => {
                    out.extend(self.describe_text(o));
                }
                _ => out.extend(self.describe_text(text)),
            },
        }
        Value::Object(out)
    }

    /// Returns a summary by the model with its masked form.
    fn summary(&self, text: &str) -> String {
        let ours = self.shown.masked.of_summary(text, &self.summaries);
        ours.map_or_else(|| super::mask::masked(text, ""), str::to_string)
    }

    fn segments(&self, all: &[SummarySegment]) -> Value {
        let one = |s: &SummarySegment| match s {
            SummarySegment::Said(text) => json!({"text": self.summary(text), "bytes": text.len()}),
            SummarySegment::Constant(name, bytes) => json!({"constant": name, "bytes": bytes}),
        };
        all.iter().map(one).collect()
    }

    /// Describes a text by itself, or by its hash if it is long or written by the program.
    fn describe_text(&self, text: &str) -> Map<String, Value> {
        let (name, value) = match self.shown.masked.get(text) {
            Some(t) if t.len() < MAX_TEXT_BYTES => ("text", t.to_string()),
            Some(t) => ("sha256", sha256(t)),
            None => ("sha256", sha256(text)),
        };
        Map::from_iter([(name.to_string(), Value::from(value))])
    }

    /// Returns the texts of the program before the conversation, which every request contains.
    fn fixed(&self, exchanges: &[&Exchange], asked: &[RecordedRequest<'_>]) -> Vec<Value> {
        let first = |summary: bool| {
            let at = asked.iter().position(|a| a.summary == summary)?;
            Some((exchanges[at], &asked[at], self.reading.requests.get(at)?.1.as_slice()))
        };
        let Some((e, own, sorts)) = first(false) else { return vec![] };
        let mut out = Vec::new();
        let head = head(own, sorts);
        let mut more = [
            (BlockKind::Base, Some(&self.reading.base)),
            (BlockKind::Context, Some(&self.reading.context)),
        ];
        for (p, kind) in &head {
            let mut piece = fixed_piece(p, *kind);
            let told = more.iter_mut().find(|(of, _)| of == kind).and_then(|(_, m)| m.take());
            piece.extend(told.cloned().into_iter().flatten());
            out.push(piece);
        }
        let tools = e.prompt.as_ref().and_then(|p| p.tools.as_ref());
        let tools = tools.and_then(|t| serde_json::from_str::<Vec<Value>>(t.json.get()).ok());
        let told = [
            ("kind".to_string(), "tools".into()),
            ("count".to_string(), tools.map_or(0, |t| t.len()).into()),
        ];
        out.push(told.into_iter().chain(self.reading.tools.clone()).collect());
        // A program may use other instructions for its summaries.
        if let Some((_, summary, sorts)) = first(true) {
            let bases = |head: Vec<(&CasePiece<'_>, BlockKind)>| -> Vec<Vec<String>> {
                let base = head.into_iter().filter(|(_, k)| *k == BlockKind::Base);
                base.map(|(p, _)| p.texts.iter().map(|t| t.to_string()).collect()).collect()
            };
            let other = self::head(summary, sorts);
            if bases(head.clone()) != bases(other.clone()) {
                for (p, kind) in other.into_iter().filter(|(_, k)| *k == BlockKind::Base) {
                    let mut piece = fixed_piece(p, kind);
                    piece.insert("for".into(), "summary".into());
                    out.push(piece);
                }
            }
        }
        out.into_iter().map(Value::Object).collect()
    }
}

/// Returns the constants at the beginning of a request.
fn head<'a, 'b>(
    asked: &'a RecordedRequest<'b>,
    sorts: &[Classification],
) -> Vec<(&'a CasePiece<'b>, BlockKind)> {
    let both = asked.pieces.iter().zip(sorts);
    let constant = |(p, s): (&'a CasePiece<'b>, &Classification)| match s {
        Classification::Constant(kind @ (BlockKind::Base | BlockKind::Context)) => Some((p, *kind)),
        _ => None,
    };
    both.map_while(constant).collect()
}

fn fixed_piece(p: &CasePiece<'_>, kind: BlockKind) -> Map<String, Value> {
    let sizes: Vec<usize> = p.texts.iter().map(|t| t.len()).collect();
    Map::from_iter([
        ("kind".to_string(), json!(kind)),
        ("role".to_string(), json!(p.role)),
        ("bytes".to_string(), one_or_all(sizes)),
        ("constant".to_string(), true.into()),
    ])
}

fn bytes(row: &CaseItem<'_>) -> Value {
    let size = |i: &&ctxbench_provider::Item| match &*i.content {
        Content::Compaction { text, opaque: Some(o) } if text.is_empty() => o.len(),
        _ => i.text().len(),
    };
    one_or_all(row.items.iter().map(size).collect())
}

fn one_or_all(sizes: Vec<usize>) -> Value {
    match sizes.as_slice() {
        [one] => json!(one),
        _ => json!(sizes),
    }
}
