//! Conversion of our requests to the notation of a case, and the first difference.

use std::collections::HashMap;

use ctxbench_core::block::{Block, BlockKind, MessageId, Role};
use ctxbench_core::request::{Request, Thread};
use ctxbench_provider::wire;
use ctxbench_strategies::conform::RequestView;
use ctxbench_strategies::conform::text::expand;
use serde_json::{Map, Value, json};

use super::CaseVerdict;
use super::case::Case;
use super::prompt;
use super::world::SentRequests;
use crate::hash::sha256;

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
                Some(difference(i, None, "request", &summary_of(case, want), "no further request"))
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
        Some(difference(
            expected,
            None,
            "number of requests",
            &expected.to_string(),
            &sent.requests.len().to_string(),
        ))
    } else if let Some(f) = &sent.fault {
        Some(difference(expected, None, "events", "all events used in order", f))
    } else if sent.left > 0 {
        Some(difference(
            expected,
            None,
            "events",
            "no event left over",
            &format!("{} left over", sent.left),
        ))
    } else {
        None
    };
    CaseVerdict { expected, matched: expected, difference: rest }
}

pub(super) fn difference(
    request: usize,
    item: Option<usize>,
    what: &str,
    expected: &str,
    got: &str,
) -> Difference {
    Difference {
        request,
        item,
        what: what.to_string(),
        expected: expected.to_string(),
        got: got.to_string(),
    }
}

fn summary_of(case: &Case, want: &Value) -> String {
    let kinds: Vec<&str> = case.items_of(want).filter_map(|i| i["kind"].as_str()).collect();
    format!("{} [{}]", want["purpose"].as_str().unwrap_or("?"), kinds.join(" "))
}

/// Returns the request parameters on the wire: those of the caller, the thread, and a compaction by
/// Anthropic.
fn params(request: &Request, view: &RequestView) -> Value {
    let mut params = request.params.clone();
    match &request.thread {
        Some(Thread::Create) => drop(params.insert("thread".into(), json!({"type": "create"}))),
        Some(Thread::Continue { after, .. }) => {
            params.insert(
                "thread".into(),
                json!({"type": "continue", "previous_message_id": &**after}),
            );
        }
        None => {}
    }
    if let Some(trigger) = asks_compaction(request, view) {
        let mut compaction = json!({"type": "summarize"});
        if !trigger.text.is_empty() {
            compaction["instructions"] = json!(&*trigger.text);
        }
        params.insert("compaction".into(), compaction);
    }
    Value::Object(params)
}

/// Returns the item that is sent as a parameter, if the case requests compactions by a parameter.
fn asks_compaction<'a>(request: &'a Request, view: &RequestView) -> Option<&'a Block> {
    let last = request.blocks.last().filter(|_| view.compaction_is_parameter)?;
    (last.kind == BlockKind::CompactionTrigger).then_some(last)
}

fn request_difference(
    case: &Case,
    i: usize,
    want: &Value,
    got: &Request,
    view: &RequestView,
    estimate: Option<&u64>,
) -> Option<Difference> {
    let got = &*got.sent();
    let compared = |name: &str| !case.not_compared.iter().any(|n| n == name);
    let phase = match view.phase {
        Some(of) => json!(of(got)),
        None => json!(got.phase),
    };
    let ours = json!({
        "purpose": got.purpose,
        "phase": phase,
        "tools": got.tools.is_some(),
        "model": &*got.model.name,
        "max_tokens": got.max_tokens,
        "tokens_after": estimate,
    });
    let (wanted, ours_params) =
        (want.get("params").cloned().unwrap_or_else(|| json!({})), params(got, view));
    if wanted != ours_params {
        return Some(difference(i, None, "params", &wanted.to_string(), &ours_params.to_string()));
    }
    for field in ["purpose", "phase", "tools", "model", "max_tokens", "tokens_after"] {
        if let Some(w) = want.get(field).filter(|_| compared(field))
            && *w != ours[field]
        {
            return Some(difference(i, None, field, &w.to_string(), &ours[field].to_string()));
        }
    }
    let items: Vec<&Value> = case.items_of(want).collect();
    let written = written(got, view);
    for (k, w) in items.iter().copied().enumerate() {
        let Some(g) = written.get(k) else {
            return Some(difference(i, Some(k), "item", &w.to_string(), "no further item"));
        };
        if let Some((what, expected, got)) = item_difference(w, g, view) {
            return Some(difference(i, Some(k), &what, &expected, &got));
        }
    }
    (written.len() > items.len()).then(|| {
        let extra = Value::Object(written[items.len()].shown.clone());
        difference(i, Some(items.len()), "item", "no further item", &extra.to_string())
    })
}

/// A block in the notation of a case.
struct CaseBlock {
    shown: Map<String, Value>,
    text: String,
    parts: Vec<String>,
    /// Media type of each part that is a file.
    media: Vec<Option<String>>,
}

fn written(request: &Request, view: &RequestView) -> Vec<CaseBlock> {
    let messages =
        view.numbered.and_then(wire::find).map(|w| w.encode(request).messages).unwrap_or_default();
    let mut out: Vec<CaseBlock> = Vec::new();
    let items = request.blocks.len() - usize::from(asks_compaction(request, view).is_some());
    for (i, b) in request.blocks[..items].iter().enumerate() {
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
            let (parts, media) = parts(b);
            last.parts.extend(parts);
            last.media.extend(media);
            last.shown.insert("bytes".into(), sizes(&last.parts));
            if request.breakpoints.contains(&i) {
                last.shown.insert("cache".into(), json!(true));
            }
            continue;
        }
        out.push({
            let mut o = Map::new();
            o.insert("kind".into(), json!(b.kind));
            let roleless = view.roleless_compaction
                && matches!(b.kind, BlockKind::Compaction | BlockKind::CompactionTrigger);
            o.insert("role".into(), if roleless { Value::Null } else { json!(b.role) });
            if let Some(c) = &b.call {
                o.insert("id".into(), json!(c.id));
                if b.kind == BlockKind::Call {
                    o.insert("name".into(), json!(c.name));
                }
            }
            // Instructions have a separate field and are not a message.
            if let Some(m) = messages.get(i).filter(|_| b.role != Role::Instructions) {
                o.insert("msg".into(), json!(m.saturating_sub(view.unnumbered)));
            }
            if request.breakpoints.contains(&i) {
                o.insert("cache".into(), json!(true));
            }
            if let Some(e) = b.opaque.as_ref().filter(|_| b.kind == BlockKind::Reasoning) {
                o.insert("encrypted_bytes".into(), json!(e.len()));
            }
            o.insert("form".into(), json!(if b.as_list { "blocks" } else { "string" }));
            let (parts, media) = parts(b);
            o.insert("bytes".into(), sizes(&parts));
            CaseBlock { shown: o, text: part_text(b), parts, media }
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

/// Size of a single part, or a list of sizes.
fn sizes(parts: &[String]) -> Value {
    match parts {
        [one] => json!(one.len()),
        many => many.iter().map(String::len).collect(),
    }
}

/// Returns the text of a block: its text, an opaque payload, or the address of a file.
fn part_text(b: &Block) -> String {
    match (&b.media, &b.opaque) {
        (Some(m), _) => m.url.clone(),
        (None, Some(o)) if b.kind == BlockKind::Compaction && b.text.is_empty() => o.to_string(),
        _ => b.text.to_string(),
    }
}

type Mismatch = (String, String, String);

fn item_difference(w: &Value, g: &CaseBlock, view: &RequestView) -> Option<Mismatch> {
    let differs =
        |what: &str, e: &Value, o: &Value| Some((what.to_string(), e.to_string(), o.to_string()));
    let ours = |k: &str| g.shown.get(k).cloned().unwrap_or(Value::Null);
    for field in ["kind", "role"] {
        if w[field] != ours(field) {
            return differs(field, &w[field], &ours(field));
        }
    }
    for field in ["id", "name", "msg", "cache", "encrypted_bytes"] {
        let e = w.get(field).cloned().unwrap_or(Value::Null);
        if e != ours(field) {
            return differs(field, &e, &ours(field));
        }
    }
    if let Some(f) = w.get("form").filter(|f| **f != ours("form")) {
        return differs("form", f, &ours("form"));
    }
    if let (Some(v), true) = (w.get("variant"), w["constant"] == true) {
        let got = prompt::read(&view.prompts, &g.text).and_then(|f| f.variant);
        if v.as_str() != got {
            return Some(("variant".into(), v.to_string(), format!("{got:?}")));
        }
    }
    if w["constant"] == true || w["unstable"] == true {
        return None;
    }
    if let Some(cut) = w.get("cut") {
        let got = view.cut.and_then(|of| of(&g.text)).unwrap_or_default();
        return (*cut != got).then(|| ("cut".into(), cut.to_string(), got.to_string()));
    }
    // Cases do not assign the text before a focus to a piece of the prompt, so the pieces of such a
    // prompt are compared separately.
    if w["bytes"] != ours("bytes") && w.get("focus").is_none() {
        return differs("bytes", &w["bytes"], &ours("bytes"));
    }
    if let Some(t) = w.get("transcript") {
        return transcript_difference(w, t, &g.text, view);
    }
    if w.get("segments").is_some() {
        let form = &view.summary;
        let body = g.text.strip_prefix(&form.head).and_then(|t| t.strip_suffix(&form.tail));
        return match (prompt::body(w, form), body) {
            (Err(e), _) => Some(("segments".into(), "segments that can be read".into(), e)),
            (Ok(e), Some(b)) if e == b => None,
            (Ok(e), b) => Some(("segments".into(), shorten(&e), shorten(b.unwrap_or(&g.text)))),
        };
    }
    if let Some(parts) = w.get("parts").and_then(Value::as_array) {
        if parts.len() != g.parts.len() {
            return Some(("parts".into(), parts.len().to_string(), g.parts.len().to_string()));
        }
        return parts.iter().zip(&g.parts).zip(&g.media).find_map(|((p, got), media)| {
            let ours = json!(media);
            match p.get("media").unwrap_or(&Value::Null) {
                wanted if *wanted != ours => differs("media", wanted, &ours),
                _ => text_difference(p, got),
            }
        });
    }
    if w["wrapped"] == true {
        // The user's text is inside constant text.
        let inner = w.get("text").and_then(|t| expand(t).ok()).unwrap_or_default();
        return (!g.text.contains(&inner)).then(|| ("text".into(), inner, g.text.clone()));
    }
    let body = if w["kind"] == "summary" {
        g.text.strip_prefix(&view.summary.head).unwrap_or(&g.text)
    } else {
        &g.text
    };
    text_difference(w, body)
}

fn shorten(text: &str) -> String {
    text.chars().take(160).collect()
}

/// Compares a text or its hash. `w` has `text` or `sha256`.
fn text_difference(w: &Value, got: &str) -> Option<Mismatch> {
    let want_text = w.get("text").or(w.is_string().then_some(w));
    if let Some(t) = want_text {
        return match expand(t) {
            Ok(e) if e == got => None,
            Ok(e) => Some(("text".into(), shorten(&e), shorten(got))),
            Err(e) => Some(("text".into(), "a readable text".into(), e.to_string())),
        };
    }
    let hash = sha256(got);
    match w.get("sha256").and_then(Value::as_str) {
        Some(h) if h == hash => None,
        Some(h) => Some(("sha256".into(), h.into(), format!("{hash} of {}", shorten(got)))),
        None => Some((
            "item".into(),
            "one of text, sha256, parts, transcript, constant".into(),
            w.to_string(),
        )),
    }
}

fn transcript_difference(w: &Value, t: &Value, got: &str, view: &RequestView) -> Option<Mismatch> {
    let odd = |e: &str| Some(("summary_prompt".to_string(), e.to_string(), shorten(got)));
    let Some(filled) = prompt::read(&view.prompts, got) else {
        return odd("the variable part between the constant texts of a known form");
    };
    let prompt::Filled { variant, transcript, prior, focus } = filled;
    if let Some(v) = w.get("variant").filter(|v| v.as_str() != variant) {
        return Some(("variant".into(), v.to_string(), format!("{variant:?}")));
    }
    if t["bytes"] != transcript.len() {
        return Some((
            "transcript bytes".into(),
            t["bytes"].to_string(),
            transcript.len().to_string(),
        ));
    }
    if let Some(m) = text_difference(t, transcript) {
        return Some(m);
    }
    // The texts of the single messages, separated by a blank line.
    let mut at = 0;
    for p in t["parts"].as_array().into_iter().flatten() {
        let end = at + p["bytes"].as_u64().unwrap_or(0) as usize;
        let Some(part) = transcript.get(at..end) else {
            return odd("parts at character boundaries of the transcript");
        };
        if let Some(m) = text_difference(p, part) {
            return Some(m);
        }
        at = end + 2;
    }
    for (what, got) in [("prior_summary", prior), ("focus", focus)] {
        let want = match w.get(what).filter(|v| !v.is_null()) {
            None => None,
            Some(v) => match prompt::body(v, &view.summary) {
                Ok(text) => Some(text),
                Err(e) => return Some((what.into(), "a readable text".into(), e)),
            },
        };
        if want.as_deref() != got {
            return Some((what.into(), format!("{want:?}"), format!("{got:?}")));
        }
    }
    None
}
