//! Conversion of our requests to the notation of a case, and the first difference.

use std::collections::HashMap;

use crate::RequestView;
use crate::case::{Bytes, Case, CaseItem, CaseRequest, ContentForm, PartText, PriorSummary};
use ctxbench_core::prelude::*;
use ctxbench_provider::wire;
use ctxbench_util::cut::cut;
use ctxbench_util::hash::sha256;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::world::SentRequests;
use super::{CaseVerdict, prompt};

/// The first difference between a run and its case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Number of the request, from 0.
    pub request: usize,
    /// Number of the item, if the difference is in an item.
    pub item: Option<usize>,
    /// Name of the compared member.
    pub what: String,
    /// Value in the case.
    pub expected: String,
    /// Value of the run.
    pub got: String,
}

impl Difference {
    /// Creates a difference without its position.
    fn new(what: &str, expected: impl Into<String>, got: impl Into<String>) -> Difference {
        let (what, expected, got) = (what.to_string(), expected.into(), got.into());
        Difference { request: 0, item: None, what, expected, got }
    }

    pub(super) fn at(self, request: usize, item: Option<usize>) -> Difference {
        Difference { request, item, ..self }
    }
}

/// Returns a difference if two values differ.
pub(super) fn differs<T: PartialEq + Serialize + ?Sized>(
    what: &str,
    want: &T,
    got: &T,
) -> Option<Difference> {
    (want != got).then(|| Difference::new(what, json_text(want), json_text(got)))
}

fn json_text<T: Serialize + ?Sized>(v: &T) -> String {
    serde_json::to_string(v).unwrap_or_default()
}

pub(super) fn compare(
    case: &Case,
    sent: &SentRequests,
    view: &RequestView,
    estimates: &HashMap<usize, u64>,
) -> CaseVerdict {
    let expected = case.requests.len();
    for (i, want) in case.requests.iter().enumerate() {
        let found = match sent.requests.get(i) {
            None => {
                let kinds: Vec<String> =
                    case.items_of(want).map(|item| json_text(&item.kind)).collect();
                let wanted = format!("{} [{}]", json_text(&want.purpose), kinds.join(" "));
                Some(Difference::new("request", wanted, "no further request").at(i, None))
            }
            Some(got) => request_difference(case, i, want, got, view, estimates.get(&i)),
        };
        if let Some(mut d) = found {
            if let Some(f) = &sent.fault {
                d.got = format!("{} (then: {f})", d.got);
            }
            return CaseVerdict { expected, matched: i, difference: Some(d) };
        }
    }
    let rest = if sent.requests.len() > expected {
        differs("number of requests", &expected, &sent.requests.len())
    } else if let Some(f) = &sent.fault {
        Some(Difference::new("events", "all events used in order", f))
    } else if sent.left > 0 {
        Some(Difference::new("events", "no event left over", format!("{} left over", sent.left)))
    } else {
        None
    };
    let difference = rest.map(|m| m.at(expected, None));
    CaseVerdict { expected, matched: expected, difference }
}

/// Returns the request parameters on the wire: those of the caller, the thread, and a compaction by
/// Anthropic.
fn params(request: &Request, view: &RequestView) -> Map<String, Value> {
    let mut params = request.params.clone();
    if let Some(thread) = &request.thread {
        params.insert("thread".into(), json!(thread));
    }
    if let Some(trigger) = asks_compaction(request, view) {
        let mut compaction = json!({"type": "summarize"});
        if !trigger.text.is_empty() {
            compaction["instructions"] = json!(&*trigger.text);
        }
        params.insert("compaction".into(), compaction);
    }
    params
}

/// Returns the item that is sent as a parameter, if the case requests compactions by a parameter.
fn asks_compaction<'a>(request: &'a Request, view: &RequestView) -> Option<&'a Block> {
    let last = request.blocks.last().filter(|_| view.compaction_is_parameter)?;
    (last.kind == BlockKind::CompactionTrigger).then_some(last)
}

fn request_difference(
    case: &Case,
    i: usize,
    want: &CaseRequest,
    got: &Request,
    view: &RequestView,
    estimate: Option<&u64>,
) -> Option<Difference> {
    let got = &*got.sent();
    // A field that the case gives and does not leave out.
    let field = |name: &str, want: Value, got: Value| {
        let is_compared = !want.is_null() && !case.not_compared.iter().any(|n| n == name);
        is_compared.then(|| differs(name, &want, &got)).flatten()
    };
    let phase = match view.phase {
        Some(of) => json!(of(got)),
        None => json!(got.phase),
    };
    let found = differs("params", &want.params, &params(got, view))
        .or_else(|| differs("purpose", &want.purpose, &got.purpose))
        .or_else(|| field("phase", json!(want.phase), phase))
        .or_else(|| differs("tools", &want.tools, &got.tools.is_some()))
        .or_else(|| field("model", json!(want.model), json!(&*got.model.name)))
        .or_else(|| field("max_tokens", json!(want.max_tokens), json!(got.max_tokens)))
        .or_else(|| field("tokens_after", json!(want.tokens_after), json!(estimate)));
    if let Some(m) = found {
        return Some(m.at(i, None));
    }
    let items: Vec<&CaseItem> = case.items_of(want).collect();
    let written = written(got, view);
    for (k, w) in items.iter().enumerate() {
        let found = match written.get(k) {
            None => Some(Difference::new("item", json_text(w), "no further item")),
            Some(g) => item_difference(w, g, view),
        };
        if let Some(m) = found {
            return Some(m.at(i, Some(k)));
        }
    }
    let extra = written.get(items.len())?;
    Some(Difference::new("item", "no further item", json_text(extra)).at(i, Some(items.len())))
}

/// A block in the notation of a case.
#[derive(Serialize)]
struct WrittenItem {
    kind: BlockKind,
    role: Option<Role>,
    id: Option<String>,
    name: Option<String>,
    msg: Option<usize>,
    cache: bool,
    encrypted_bytes: Option<usize>,
    form: ContentForm,
    text: String,
    parts: Vec<String>,
    /// Media type of each part that is a file.
    media: Vec<Option<String>>,
}

fn written(request: &Request, view: &RequestView) -> Vec<WrittenItem> {
    let messages =
        view.numbered.and_then(wire::find).map(|w| w.encode(request).messages).unwrap_or_default();
    let mut out: Vec<WrittenItem> = Vec::new();
    let items = request.blocks.len() - usize::from(asks_compaction(request, view).is_some());
    for (i, b) in request.blocks[..items].iter().enumerate() {
        let cache = request.breakpoints.contains(&i);
        let (parts, media) = parts(b);
        // Texts and files of a user message form one item with several parts.
        let joins = i > 0
            && b.role == Role::User
            && request.blocks[i - 1].message == b.message
            && b.message != MessageId(u32::MAX);
        let own = |k: BlockKind| matches!(k, BlockKind::User | BlockKind::Image);
        if joins
            && own(b.kind)
            && own(request.blocks[i - 1].kind)
            && let Some(last) = out.last_mut()
        {
            last.parts.extend(parts);
            last.media.extend(media);
            last.cache |= cache;
            continue;
        }
        let roleless = view.roleless_compaction
            && matches!(b.kind, BlockKind::Compaction | BlockKind::CompactionTrigger);
        // Instructions have a separate field and are not a message.
        let message = messages.get(i).filter(|_| b.role != Role::Instructions);
        let encrypted = b.opaque.as_ref().filter(|_| b.kind == BlockKind::Reasoning);
        let called = b.call.as_ref().filter(|_| b.kind == BlockKind::Call);
        out.push(WrittenItem {
            kind: b.kind,
            role: (!roleless).then_some(b.role),
            id: b.call.as_ref().map(|c| c.id.to_string()),
            name: called.map(|c| c.name.to_string()),
            msg: message.map(|m| m.saturating_sub(view.unnumbered)),
            cache,
            encrypted_bytes: encrypted.map(|e| e.len()),
            form: if b.as_list { ContentForm::Blocks } else { ContentForm::String },
            text: part_text(b),
            parts,
            media,
        });
    }
    out
}

/// Returns the content parts of a block, and the media type of each part that is a file.
fn parts(b: &Block) -> (Vec<String>, Vec<Option<String>>) {
    let parts: Vec<String> = if b.splits.is_empty() {
        vec![part_text(b)]
    } else {
        b.parts().map(str::to_string).collect()
    };
    let media = vec![b.media.as_ref().map(|m| m.media_type.clone()); parts.len()];
    (parts, media)
}

/// Returns the text of a block: its text, an opaque payload, or the address of a file.
fn part_text(b: &Block) -> String {
    match (&b.media, &b.opaque) {
        (Some(m), _) => m.url.clone(),
        (None, Some(o)) if b.kind == BlockKind::Compaction && b.text.is_empty() => o.to_string(),
        _ => b.text.to_string(),
    }
}

fn item_difference(w: &CaseItem, g: &WrittenItem, view: &RequestView) -> Option<Difference> {
    let filled = prompt::read(&view.prompts, &g.text);
    let variant = filled.as_ref().and_then(|f| f.variant).map(str::to_string);
    let bytes = Bytes::from(g.parts.iter().map(String::len).collect::<Vec<_>>());
    let found = differs("kind", &w.kind, &g.kind)
        .or_else(|| differs("role", &w.role, &g.role))
        .or_else(|| differs("id", &w.id, &g.id))
        .or_else(|| differs("name", &w.name, &g.name))
        .or_else(|| differs("msg", &w.msg, &g.msg))
        .or_else(|| differs("cache", &w.cache, &g.cache))
        .or_else(|| differs("encrypted_bytes", &w.encrypted_bytes, &g.encrypted_bytes))
        .or_else(|| differs("form", &w.form.unwrap_or(g.form), &g.form))
        .or_else(|| w.variant.as_ref().and_then(|_| differs("variant", &w.variant, &variant)));
    if found.is_some() || w.constant || w.unstable {
        return found;
    }
    if w.cut.is_some() {
        return differs("cut", &w.cut, &view.cut.and_then(|of| of(&g.text)));
    }
    if let Some(m) = differs("bytes", &w.bytes, &bytes) {
        return Some(m);
    }
    if let Some(t) = &w.transcript {
        let Some(filled) = filled else {
            let what = "the variable part between the constant texts of a known form";
            return Some(Difference::new("summary_prompt", what, shorten(&g.text)));
        };
        return transcript_difference(w, t, filled, g.text.len(), view);
    }
    let form = &view.summary;
    if !w.segments.is_empty() {
        let body = g.text.strip_prefix(&form.head).and_then(|t| t.strip_suffix(&form.tail));
        return match prompt::body(&w.segments, form) {
            Err(e) => Some(Difference::new("segments", "segments that can be read", e)),
            Ok(e) if body == Some(&e) => None,
            Ok(e) => {
                Some(Difference::new("segments", shorten(&e), shorten(body.unwrap_or(&g.text))))
            }
        };
    }
    if !w.parts.is_empty() {
        return differs("parts", &w.parts.len(), &g.parts.len()).or_else(|| {
            w.parts.iter().zip(&g.parts).zip(&g.media).find_map(|((p, got), media)| {
                differs("media", &p.media, media).or_else(|| text_difference(p, got))
            })
        });
    }
    let text = PartText { text: w.text.clone(), sha256: w.sha256.clone(), ..PartText::default() };
    match &text.text {
        // The user's text is inside constant text.
        Some(inner) if w.wrapped => {
            (!g.text.contains(inner)).then(|| Difference::new("text", inner, &g.text))
        }
        _ if w.kind == BlockKind::Summary => {
            text_difference(&text, g.text.strip_prefix(&form.head).unwrap_or(&g.text))
        }
        _ => text_difference(&text, &g.text),
    }
}

fn shorten(text: &str) -> String {
    cut(text, 160)
}

fn text_difference(w: &PartText, got: &str) -> Option<Difference> {
    if let Some(text) = &w.text {
        return (text != got).then(|| Difference::new("text", shorten(text), shorten(got)));
    }
    let Some(want) = &w.sha256 else {
        let what = "one of text, sha256, parts, transcript, constant";
        return Some(Difference::new("item", what, json_text(w)));
    };
    let hash = sha256(got);
    let got = || format!("{hash} of {}", shorten(got));
    (*want != hash).then(|| Difference::new("sha256", want, got()))
}

fn transcript_difference(
    w: &CaseItem,
    t: &PartText,
    filled: prompt::Filled<'_>,
    len: usize,
    view: &RequestView,
) -> Option<Difference> {
    let prompt::Filled { transcript, prior, .. } = filled;
    let constant = len - transcript.len() - prior.map_or(0, str::len);
    let found = differs("transcript bytes", &t.bytes, &Some(transcript.len()))
        .or_else(|| text_difference(t, transcript))
        .or_else(|| differs("constant_bytes", &w.constant_bytes.unwrap_or(constant), &constant));
    if found.is_some() {
        return found;
    }
    // The texts of the single messages, separated by a blank line.
    let mut at = 0;
    for p in &t.parts {
        let end = at + p.bytes.unwrap_or(0);
        let Some(part) = transcript.get(at..end) else {
            let what = "parts at character boundaries of the transcript";
            return Some(Difference::new("summary_prompt", what, shorten(transcript)));
        };
        if let Some(m) = text_difference(p, part) {
            return Some(m);
        }
        at = end + 2;
    }
    let want = match &w.prior_summary {
        None => None,
        Some(PriorSummary::Text(text)) => Some(text.clone()),
        Some(PriorSummary::Segments { segments, .. }) => {
            match prompt::body(segments, &view.summary) {
                Ok(text) => Some(text),
                Err(e) => return Some(Difference::new("prior_summary", "a readable text", e)),
            }
        }
    };
    differs("prior_summary", &want.as_deref(), &prior)
}
