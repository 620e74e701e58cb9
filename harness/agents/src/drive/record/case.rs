//! Builds a case from the requests of a driven product.

use std::collections::{HashMap, HashSet};

use ctxbench_conform::case::{
    Case, CaseItem, CaseRequest, FixedPiece, FixedText, FixedTools, Listed, PartText, PriorSummary,
    Segment,
};
use ctxbench_conform::record::{
    CasePiece, CaseRecording, Classification, RecordedRequest, RecordedSession, SessionReading,
};
use ctxbench_core::{BlockKind, Part, Role, request};
use ctxbench_provider::{Item, Prompt};
use ctxbench_util::hash::sha256;
use serde_json::Value;

use super::events::{self, SentTexts};
use super::mask::Mask;
use crate::drive::{Driven, Exchange, Purpose, words};

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
    let own = driven.exchanges.iter().filter(|e| e.is_own() && e.prompt.is_some());
    let exchanges: Vec<&Exchange> = own.collect();
    let wire = exchanges.first()?.wire;
    let said = driven.plan.messages().map(|(_, words)| words.trim());
    let said: Vec<&str> = said.filter(|words| !words.is_empty()).collect();
    let asked: Vec<RecordedRequest<'_>> = exchanges
        .iter()
        .filter_map(|e| {
            Some(RecordedRequest {
                summary: e.purpose == Purpose::Summary,
                label: e.label.as_deref(),
                overflowed: e.outcome.as_ref().is_err_and(|e| e.is_overflow()),
                pieces: pieces(e.prompt.as_ref()?, recording.texts_apart, &said),
            })
        })
        .collect();
    let summaries = exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
    let summaries: Vec<&str> =
        summaries.filter_map(|e| e.outcome.as_ref().ok().map(words)).collect();
    let reading = (recording.read)(&RecordedSession {
        model: &driven.model.name,
        window: driven.window,
        max_output: driven.max_output,
        wire: wire.name,
        told: &driven.end.told,
        requests: &asked,
        summaries: &summaries,
        prompts: &ends(driven),
    });
    let shown = sent_texts(driven, &exchanges, &asked, &reading);
    let mut writer =
        CaseWriter { shown: &shown, reading: &reading, recording, items: Items::default() };
    let requests = exchanges.iter().zip(&asked).enumerate();
    let requests = requests.map(|(i, (e, asked))| writer.request(i, e, &asked.pieces)).collect();
    let fixed = writer.fixed(driven, &exchanges, &asked);
    let items = writer.items.all;
    Some(Case {
        kind: "replay".into(),
        agent: driven.strategy.as_ref()?.descriptor.name.into(),
        version: version.into(),
        name: name.into(),
        shows: format!("The session `{name}` driven through the real program."),
        fixed,
        events: events::build(driven, &exchanges, &shown, resumes),
        settings: reading.settings,
        constants: reading.constants,
        items,
        requests,
        not_compared: vec![],
        outcome: reading.outcome,
    })
}

/// Returns the outcome of each user message: `done` or `error`.
fn ends(driven: &Driven) -> Vec<&'static str> {
    let failed = |i: usize| driven.end.failures.iter().any(|(at, _)| *at == i);
    driven.plan.messages().map(|(i, _)| if failed(i) { "error" } else { "done" }).collect()
}

/// Returns the texts that entered the history.
fn sent_texts<'a>(
    driven: &'a Driven,
    exchanges: &[&'a Exchange],
    asked: &[RecordedRequest<'a>],
    reading: &SessionReading,
) -> SentTexts<'a> {
    let mut outputs = HashMap::new();
    for item in asked.iter().flat_map(|r| &r.pieces).flat_map(|p| p.items) {
        if let (BlockKind::Output, Some(id)) = (item.kind, item.call_id()) {
            outputs.entry(id).or_insert(item.text());
        }
    }
    let mut said = HashMap::new();
    for (i, words) in driven.plan.messages().filter(|(_, words)| !words.trim().is_empty()) {
        let work = |e: &&Exchange| e.purpose == Purpose::Work && e.step == i;
        let Some(first) = exchanges.iter().position(work) else { continue };
        let holds =
            |p: &&CasePiece<'_>| p.of_user() && p.texts.iter().any(|t| t.contains(words.trim()));
        let found = asked[first].pieces.iter().rev().find(holds);
        said.extend(found.map(|piece| (i, piece.texts.clone())));
    }
    let sorted = asked.iter().zip(&reading.requests);
    let sorted = sorted.flat_map(|(r, (_, sorts))| r.pieces.iter().zip(sorts));
    let constant = |sort: &Classification| matches!(sort, Classification::Constant(..));
    let constants = sorted.filter(|(_, sort)| constant(sort)).flat_map(|(p, _)| &p.texts);
    let agent: HashSet<&str> =
        constants.chain(outputs.values()).chain(said.values().flatten()).copied().collect();
    let replies = exchanges.iter().filter(|e| e.purpose == Purpose::Work);
    let replies = replies.filter_map(|e| e.outcome.as_ref().ok()).flat_map(|r| &r.parts);
    let session = replies.filter_map(|p| match p {
        Part::Call(call) => Some(&*call.arguments),
        p => p.as_text(),
    });
    let session = session
        .chain(driven.plan.messages().map(|(_, words)| words))
        .chain(driven.plan.outputs.iter().map(|t| &**t));
    let mask = Mask::new(agent.into_iter(), session);
    SentTexts { mask, said, outputs, cache_beside_input: reading.cache_beside_input }
}

#[derive(Default)]
struct Items {
    all: Vec<CaseItem>,
    known: HashMap<String, usize>,
}

impl Items {
    fn number(&mut self, item: CaseItem) -> usize {
        let text = serde_json::to_string(&item).unwrap_or_default();
        *self.known.entry(text).or_insert_with(|| {
            self.all.push(item);
            self.all.len() - 1
        })
    }

    /// Lists numbers as a case does, with the first and last number of a run.
    fn listed(numbers: &[usize]) -> Vec<Listed> {
        let runs = numbers.chunk_by(|a, b| a + 1 == *b);
        let run = |r: &[usize]| match r {
            [one] => Listed::Number(*one),
            several => Listed::Numbers([several[0], several[several.len() - 1]]),
        };
        runs.map(run).collect()
    }
}

struct CaseWriter<'a> {
    shown: &'a SentTexts<'a>,
    reading: &'a SessionReading,
    recording: &'a CaseRecording,
    items: Items,
}

impl CaseWriter<'_> {
    fn request(&mut self, i: usize, e: &Exchange, pieces: &[CasePiece<'_>]) -> CaseRequest {
        let none = (None, vec![]);
        let (phase, sorts) = self.reading.requests.get(i).unwrap_or(&none);
        let both = pieces.iter().zip(sorts);
        let numbers: Vec<usize> = both
            .map(|(piece, sort)| {
                let item = self.item(piece, sort);
                self.items.number(item)
            })
            .collect();
        let prompt = e.prompt.as_ref();
        CaseRequest {
            purpose: e.purpose_in_cases(),
            tools: prompt.is_some_and(|p| p.tools.is_some()),
            phase: phase.clone(),
            model: None,
            max_tokens: prompt.and_then(|p| p.max_tokens).filter(|_| self.recording.limits_replies),
            params: serde_json::Map::new(),
            tokens_after: None,
            items: Items::listed(&numbers),
        }
    }

    fn item(&self, piece: &CasePiece<'_>, sort: &Classification) -> CaseItem {
        let first = &piece.items[0];
        let kind = match sort {
            Classification::Said(kind) | Classification::Constant(kind, _) => *kind,
            Classification::Summary { .. } | Classification::Segments { .. } => BlockKind::Summary,
            Classification::Prompt { .. } => BlockKind::SummaryPrompt,
        };
        let roleless = matches!(kind, BlockKind::Compaction | BlockKind::CompactionTrigger);
        let mut out = CaseItem {
            kind,
            role: (!roleless).then_some(piece.role),
            bytes: piece.items.iter().map(|i| sent(i).len()).collect::<Vec<_>>().into(),
            msg: self.reading.numbered.map(|less| first.message.saturating_sub(less)),
            cache: piece.items.iter().any(|i| i.cache.is_some()),
            ..CaseItem::default()
        };
        out.id = first.call_id().map(str::to_string);
        let call = first.call.as_ref().filter(|_| first.kind == BlockKind::Call);
        out.name = call.map(|c| c.name.to_string());
        let sealed = first.opaque.as_ref().filter(|_| first.kind == BlockKind::Reasoning);
        out.encrypted_bytes = sealed.map(|e| e.len());
        let text = first.text();
        let said = match sort {
            Classification::Constant(..) => {
                out.constant = true;
                return out;
            }
            Classification::Segments { segments, .. } => {
                out.segments = self.segments(segments);
                return out;
            }
            Classification::Prompt { variant, transcript, prior, constant } => {
                let t = self.shown.mask.text(transcript);
                out.variant = variant.map(str::to_string);
                out.constant_bytes = Some(constant.1);
                let (bytes, sha256) = (Some(t.len()), Some(sha256(&t)));
                out.transcript = Some(PartText { bytes, sha256, ..PartText::default() });
                out.prior_summary = match prior.as_slice() {
                    [] => None,
                    [Segment { text: Some(text), .. }] => {
                        Some(PriorSummary::Text(self.shown.mask.text(text)))
                    }
                    several => Some(PriorSummary::Segments {
                        bytes: several.iter().map(|s| s.bytes).sum(),
                        segments: self.segments(several),
                    }),
                };
                return out;
            }
            Classification::Said(_) if piece.items.len() > 1 => {
                out.parts = piece.texts.iter().map(|t| self.describe_text(t)).collect();
                return out;
            }
            Classification::Summary { body } => text.get(body.clone()).unwrap_or(text),
            Classification::Said(_) => sent(first),
        };
        let PartText { text, sha256, .. } = self.describe_text(said);
        (out.text, out.sha256) = (text, sha256);
        out
    }

    /// Masks the texts of segments.
    fn segments(&self, all: &[Segment]) -> Vec<Segment> {
        let text = |s: &Segment| s.text.as_ref().map(|t| self.shown.mask.text(t));
        all.iter().map(|s| Segment { text: text(s), ..s.clone() }).collect()
    }

    /// Describes a text by itself, or by its hash if it is long.
    fn describe_text(&self, text: &str) -> PartText {
        let masked = self.shown.mask.text(text);
        match masked.len() < MAX_TEXT_BYTES {
            true => PartText { text: Some(masked), ..PartText::default() },
            false => PartText { sha256: Some(sha256(&masked)), ..PartText::default() },
        }
    }

    /// Returns the texts of the program before the conversation, which every request contains.
    fn fixed(
        &self,
        driven: &Driven,
        exchanges: &[&Exchange],
        asked: &[RecordedRequest<'_>],
    ) -> Vec<FixedPiece> {
        let first = |summary: bool| {
            let at = asked.iter().position(|a| a.summary == summary)?;
            let (_, sorts) = self.reading.requests.get(at)?;
            Some((exchanges[at], head(&asked[at], sorts)))
        };
        let Some((e, own)) = first(false) else { return vec![] };
        let mut notes = Some(&driven.notes);
        let mut counts_chars = self.recording.context_chars;
        let mut out = Vec::new();
        for (p, kind) in &own {
            let mut text = fixed_text(p);
            if *kind == BlockKind::Base {
                let notes = notes.take();
                text.estimate_bytes = notes.and_then(|n| n.base_bytes);
                text.estimate_tokens = notes.and_then(|n| n.base_tokens);
                out.push(FixedPiece::Base(text));
            } else {
                if std::mem::take(&mut counts_chars) {
                    count_chars(p.text(), &mut text);
                }
                out.push(FixedPiece::Context(text));
            }
        }
        let tools = e.prompt.as_ref().and_then(|p| p.tools.as_ref());
        let tools = tools.and_then(|t| serde_json::from_str::<Vec<Value>>(t.json.get()).ok());
        out.push(FixedPiece::Tools(FixedTools {
            count: tools.map_or(0, |t| t.len()),
            purpose: None,
            json_utf16: driven.notes.tools_utf16,
        }));
        // A program may use other instructions for its summaries.
        let texts = |head: &Head<'_, '_>| -> Vec<Vec<String>> {
            let of = |p: &CasePiece<'_>| p.texts.iter().map(|t| t.to_string()).collect();
            bases(head).into_iter().map(of).collect()
        };
        if let Some((_, other)) = first(true).filter(|(_, other)| texts(other) != texts(&own)) {
            let purpose = Some(request::Purpose::Summary);
            let piece = |p| FixedPiece::Base(FixedText { purpose, ..fixed_text(p) });
            out.extend(bases(&other).into_iter().map(piece));
        }
        out
    }
}

/// The constants at the beginning of a request.
type Head<'a, 'b> = Vec<(&'a CasePiece<'b>, BlockKind)>;

fn head<'a, 'b>(asked: &'a RecordedRequest<'b>, sorts: &[Classification]) -> Head<'a, 'b> {
    let both = asked.pieces.iter().zip(sorts);
    let constant = |(p, s): (&'a CasePiece<'b>, &Classification)| match s {
        Classification::Constant(kind @ (BlockKind::Base | BlockKind::Context), _) => {
            Some((p, *kind))
        }
        _ => None,
    };
    both.map_while(constant).collect()
}

fn bases<'a, 'b>(head: &Head<'a, 'b>) -> Vec<&'a CasePiece<'b>> {
    head.iter().filter(|(_, kind)| *kind == BlockKind::Base).map(|(p, _)| *p).collect()
}

fn fixed_text(p: &CasePiece<'_>) -> FixedText {
    FixedText {
        role: p.role,
        bytes: p.texts.iter().map(|t| t.len()).collect::<Vec<_>>().into(),
        constant: true,
        ..FixedText::default()
    }
}

/// Counts the characters of a text as the program's estimates need them.
fn count_chars(text: &str, out: &mut FixedText) {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let utf16 = |t: &str| t.encode_utf16().count();
    out.ascii_chars = Some(ascii);
    out.other_chars = Some(utf16(text) - ascii);
    out.json_utf16 = Some(utf16(&Value::from(text).to_string()));
}

/// Returns the text of an item, or its opaque payload.
fn sent(item: &Item) -> &str {
    let opaque = item.opaque.as_deref();
    let opaque = opaque.filter(|_| item.kind == BlockKind::Compaction && item.text.is_empty());
    opaque.unwrap_or(item.text())
}

/// Minimum length of a message that is searched for in a longer text, bytes. Shorter ones match by
/// chance.
const MIN_WITHIN_BYTES: usize = 16;
/// Length of the beginning by which a truncated message is recognised, bytes.
const BEGINNING: usize = 200;

/// Returns the pieces of a request. With `apart` every text of a message is a separate piece. `said`
/// are the messages of the user.
fn pieces<'a>(prompt: &'a Prompt, apart: bool, said: &[&str]) -> Vec<CasePiece<'a>> {
    let text = |i: &Item| i.is_text();
    let together = |a: &Item, b: &Item| {
        let one = a.message == b.message && a.role == b.role && a.role != Role::Assistant;
        !apart && one && text(a) && text(b)
    };
    // Some APIs send an empty text along with calls.
    let silent = |g: &&[Item]| matches!(g, [one] if one.text().is_empty() && text(one));
    let groups = prompt.items.chunk_by(together).filter(|g| !silent(g));
    let piece = |items: &'a [Item]| {
        let first = &items[0];
        // All texts that are not the model's are the user's in a case.
        let kind = match first.kind {
            BlockKind::Base | BlockKind::Context => BlockKind::User,
            kind => kind,
        };
        // Some APIs send results of tools in the role of the user.
        let role = if kind == BlockKind::Output { Role::Tool } else { first.role };
        let texts: Vec<&str> = items.iter().map(Item::text).collect();
        let of_user = kind == BlockKind::User && role == Role::User;
        let said = !of_user || texts.iter().any(|text| contains_message(text, said));
        CasePiece { role, kind, texts, items, said }
    };
    groups.map(piece).collect()
}

/// Returns whether a text is a message of the user, or contains or truncates one.
fn contains_message(text: &str, said: &[&str]) -> bool {
    said.iter().any(|words| {
        text.trim() == *words
            || (words.len() >= MIN_WITHIN_BYTES && text.contains(words))
            || (words.len() > BEGINNING
                && text.contains(&words[..words.floor_char_boundary(BEGINNING)]))
    })
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::Role;

    use super::*;

    #[test]
    fn characters_are_counted_in_the_programs_units() {
        let texts = vec!["a \u{e9}\n"];
        let (role, kind) = (Role::User, BlockKind::User);
        let piece = CasePiece { role, kind, texts, items: &[], said: false };
        let mut text = fixed_text(&piece);
        count_chars(piece.text(), &mut text);
        // A two-byte letter is one unit. In JSON the quotes count too, and the line break is two
        // units.
        let counts = [text.ascii_chars, text.other_chars, text.json_utf16];
        assert_eq!(counts, [Some(3), Some(1), Some(7)]);
    }
}
