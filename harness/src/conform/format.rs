//! Members of replay cases (docs/cases.md) and the rules between them.

use ctxbench_strategies::conform::shape::MemberKind::{
    Any, Bytes, Count, Filler, Flag, Many, Object, One, OneOf, Text, Tools, True, Word, Words,
};
use ctxbench_strategies::conform::shape::{Shape, may, must, must_or_null, null};
use ctxbench_strategies::conform::text::expand;
use serde_json::Value;

use super::case::{Case, CaseError, span};
use super::shape::{Checker, exactly_one, odd};

const USAGE: Shape = &[
    may("input_tokens", Count),
    may("output_tokens", Count),
    may("prompt_tokens", Count),
    may("completion_tokens", Count),
    may("total_tokens", Count),
    // The API may report the cache counters as null.
    null("cache_creation_input_tokens", Count),
    null("cache_read_input_tokens", Count),
    may("iterations", Many(ITERATION)),
];

/// A pass over the model within a request.
const ITERATION: Shape = &[
    must("type", Word),
    may("input_tokens", Count),
    may("output_tokens", Count),
    null("cache_creation_input_tokens", Count),
    null("cache_read_input_tokens", Count),
];

const CALL: Shape = &[
    must("id", Word),
    must("name", Word),
    must("arguments", Text),
    null("output", Text),
    null("output_bytes", Bytes),
    may("is_error", Flag),
];

const REASONING: Shape =
    &[may("text", Text), may("encrypted", Text), may("encrypted_bytes", Bytes)];

const USER: Shape = &[must("type", Word), may("text", Text), may("parts", Many(USER_PART))];

const USER_PART: Shape = &[
    may("text", Text),
    may("url", Text),
    may("media", Word),
    may("mime", Word),
    may("media_type", Word),
    may("name", Word),
    may("filename", Word),
];

const REPLY: Shape = &[
    must("type", Word),
    may("id", Word),
    may("reasoning", One(REASONING)),
    null("compaction", Text),
    null("text", Text),
    may("calls", Many(CALL)),
    may("blocks", Many(BLOCK)),
    null("stop_reason", Word),
    must_or_null("usage", One(USAGE)),
];

const SUMMARY_REPLY: Shape = &[
    must("type", Word),
    may("id", Word),
    may("reasoning", One(REASONING)),
    null("compaction", Text),
    null("opaque", Text),
    null("text", Text),
    may("calls", Many(CALL)),
    may("blocks", Many(BLOCK)),
    null("stop_reason", Word),
    must_or_null("usage", One(USAGE)),
];

/// A raw block of the Anthropic API.
const BLOCK: Shape = &[
    must("type", OneOf(&["text", "thinking", "redacted_thinking", "tool_use", "compaction"])),
    may("text", Text),
    may("thinking", Text),
    may("data", Text),
    may("input", Object),
    null("content", Text),
    may("signature", Word),
    may("id", Word),
    may("name", Word),
];

const ERROR: Shape = &[
    must("type", Word),
    must("on", OneOf(&["sample", "summary"])),
    may("status", Count),
    may("code", Word),
    may("message", Word),
    may("text", Text),
];

const COMPACT: Shape = &[must("type", Word), null("instructions", Text), null("focus", Text)];

const BARE: Shape = &[must("type", Word)];

const APPEND: Shape = &[must("type", Word), must("form", OneOf(&["blocks", "object"]))];

const EVENTS: &[(&str, Shape)] = &[
    ("user", USER),
    ("reply", REPLY),
    ("summary_reply", SUMMARY_REPLY),
    ("error", ERROR),
    ("compact", COMPACT),
    ("restart", BARE),
    ("kill", BARE),
    ("caller_append", APPEND),
];

const PURPOSE: &[&str] = &["sample", "summary"];

const FIXED: &[(&str, Shape)] = &[("base", PIECE), ("context", PIECE), ("tools", TOOLS)];

const TOOLS: Shape = &[
    must("kind", Word),
    must("count", Tools),
    may("for", OneOf(PURPOSE)),
    may("json_utf16", Filler),
];

const PIECE: Shape = &[
    must("kind", Word),
    must("role", Word),
    must("bytes", Filler),
    may("msg", Count),
    may("for", OneOf(PURPOSE)),
    may("text", Text),
    may("constant", True),
    null("estimate_bytes", Count),
    may("json_bytes", Bytes),
    may("estimate_tokens", Count),
    may("json_utf16", Filler),
    may("ascii_chars", Filler),
    may("other_chars", Filler),
];

/// Phases in which a summary is requested.
const PHASES: &[&str] =
    &["pre_turn", "mid_turn", "post_turn", "standalone_turn", "summary", "verify"];

const REQUEST: Shape = &[
    must("purpose", OneOf(PURPOSE)),
    must("tools", Flag),
    may("phase", OneOf(PHASES)),
    may("model", Word),
    may("max_tokens", Count),
    may("params", Object),
    may("tokens_after", Count),
    must("items", Any),
];

const ITEM: Shape = &[
    must("kind", Word),
    must_or_null("role", Word),
    must("bytes", Bytes),
    may("msg", Count),
    may("id", Word),
    may("name", Word),
    may("form", OneOf(&["string", "blocks"])),
    may("cache", True),
    may("encrypted_bytes", Bytes),
    may("text", Text),
    may("sha256", Word),
    may("parts", Many(ITEM_PART)),
    may("transcript", One(TRANSCRIPT)),
    may("segments", Many(SEGMENT)),
    may("variant", Word),
    null("prior_summary", Any),
    null("focus", Any),
    may("constant", True),
    may("constant_bytes", Bytes),
    may("wrapped", True),
    may("derived", Word),
    may("cut", One(CUT)),
    may("unstable", True),
];

/// Remaining parts of an output that was cut.
const CUT: Shape =
    &[must("head_chars", Count), must("tail_chars", Count), must("omitted_chars", Count)];

/// A piece of a summary: written by a model, constant in the program, or lists of files.
const SEGMENT: Shape =
    &[may("text", Text), may("constant", Word), may("files", One(FILES)), must("bytes", Bytes)];

const FILES: Shape = &[must("read", Words), must("modified", Words)];

/// A text in a prompt with its size.
const SIZED_TEXT: Shape =
    &[must("bytes", Bytes), may("text", Text), may("segments", Many(SEGMENT))];

const ITEM_PART: Shape = &[may("text", Text), may("sha256", Word), may("media", Word)];

const TRANSCRIPT: Shape = &[
    must("bytes", Bytes),
    may("text", Text),
    may("sha256", Word),
    may("parts", Many(TRANSCRIPT_PART)),
];

const TRANSCRIPT_PART: Shape = &[must("bytes", Bytes), may("text", Text), may("sha256", Word)];

const OUTCOME: Shape = &[
    may("requests", Count),
    may("tool_calls_executed", Words),
    may("final", Words),
    may("error", Word),
    may("compactions", Many(COMPACTION)),
    may("failed", Words),
    may("prompts", Words),
];

const COMPACTION: Shape = &[
    must("reason", Word),
    must("tokens_before", Count),
    may("tokens_after", Count),
    may("read_files", Words),
    may("modified_files", Words),
];

/// Items with implementation-defined text. The text of all other items is compared.
const CONSTANT_KINDS: &[&str] =
    &["base", "context", "summary_prompt", "marker", "continue", "compaction_trigger", "ack"];

/// Fields that a case may leave out of its comparison.
const LEAVABLE: &[&str] = &["phase", "model", "max_tokens", "tokens_after"];

/// Checks the members of a case. Returns an error for one that is unknown, missing, contradictory
/// or of the wrong type.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let mut c = Checker::default();
    let product = case.product()?;
    let whole = |o| Value::Object(o);
    if product.parameters {
        c.open("settings", &case.settings, product.settings)?;
    } else {
        c.closed("settings", &whole(case.settings.clone()), product.settings)?;
    }
    c.closed("constants", &whole(case.constants.clone()), product.constants)?;
    for (name, v) in &case.constants {
        if let Some(p) = v.get("placeholder").and_then(Value::as_str) {
            same_size(&format!("constants.{name}.placeholder"), &v["bytes"], p.len())?;
        }
    }
    for (i, f) in case.fixed.iter().enumerate() {
        let at = format!("fixed[{i}]");
        c.closed(&at, f, by_name(&at, f, "kind", FIXED)?)?;
        if f["kind"] != "tools" {
            exactly_one(&at, f, &["text", "constant"])?;
        }
        sized(&at, f)?;
    }
    for (name, list) in [("events", &case.events), ("requests", &case.requests)] {
        if list.is_empty() {
            return Err(odd(name, "at least one", "none"));
        }
    }
    for (i, e) in case.events.iter().enumerate() {
        event(&mut c, &format!("events[{i}]"), e)?;
    }
    for (i, r) in case.requests.iter().enumerate() {
        let at = format!("requests[{i}]");
        c.closed(&at, r, REQUEST)?;
        let at = format!("{at}.items");
        let items = r["items"].as_array().ok_or_else(|| odd(&at, "a list", &r["items"]))?;
        for (k, entry) in items.iter().enumerate() {
            listed(&mut c, &format!("{at}[{k}]"), entry, case)?;
        }
    }
    for (i, one) in case.items.iter().enumerate() {
        item(&mut c, &format!("items[{i}]"), one, bytes_around(case))?;
    }
    if let Some(name) = case.not_compared.iter().find(|n| !LEAVABLE.contains(&n.as_str())) {
        return Err(odd("not_compared", format!("some of {}", LEAVABLE.join(", ")), name));
    }
    match &case.outcome {
        None if product.ends.is_empty() => Ok(()),
        None => {
            let what = format!("an object, required for {}", case.agent);
            Err(odd("outcome", what, "nothing"))
        }
        Some(o) => {
            c.closed("outcome", o, OUTCOME)?;
            if let Some(name) = product.ends.iter().find(|k| o.get(**k).is_none()) {
                return Err(odd(&format!("outcome.{name}"), "a value, required", "nothing"));
            }
            match o.get("requests").or(o.get("final")).or(o.get("error")) {
                Some(_) => exactly_one("outcome", o, &["final", "error"]),
                None => Ok(()),
            }
        }
    }
}

/// Returns the shape for the type that a member names.
fn by_name(
    at: &str,
    v: &Value,
    member: &str,
    shapes: &'static [(&str, Shape)],
) -> Result<Shape, CaseError> {
    let found = shapes.iter().find(|(name, _)| v[member] == *name);
    let known = || shapes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found
        .map(|(_, s)| *s)
        .ok_or_else(|| odd(&format!("{at}.{member}"), format!("one of {}", known()), &v[member]))
}

fn event(c: &mut Checker, at: &str, e: &Value) -> Result<(), CaseError> {
    c.closed(at, e, by_name(at, e, "type", EVENTS)?)?;
    if e["type"] == "user" {
        exactly_one(at, e, &["text", "parts"])?;
    }
    for (i, p) in list(e, "parts") {
        exactly_one(&format!("{at}.parts[{i}]"), p, &["text", "url"])?;
    }
    if e["type"] == "error" && e.get("status").is_none() && e.get("code").is_none() {
        return Err(odd(at, "a status or a code", "neither"));
    }
    if let Some(s) = e.get("status").and_then(Value::as_u64).filter(|s| !(100..600).contains(s)) {
        return Err(odd(&format!("{at}.status"), "an HTTP status from 100 to 599", s));
    }
    for (i, b) in list(e, "blocks") {
        // Each block type keeps its text in its own member.
        let own = match b["type"].as_str() {
            Some("compaction") => "content",
            Some("thinking") => "thinking",
            Some("redacted_thinking") => "data",
            Some("tool_use") => "input",
            _ => "text",
        };
        let at = format!("{at}.blocks[{i}]");
        exactly_one(&at, b, &["text", "thinking", "data", "input", "content"])?;
        exactly_one(&at, b, &[own])?;
    }
    for (i, call) in list(e, "calls") {
        if let (Some(output), Some(bytes)) =
            (call.get("output").filter(|o| !o.is_null()), call.get("output_bytes"))
        {
            same_size(&format!("{at}.calls[{i}].output_bytes"), bytes, expand(output)?.len())?;
        }
    }
    if let Some((encrypted, bytes)) =
        e.get("reasoning").and_then(|r| Some((r.get("encrypted")?, r.get("encrypted_bytes")?)))
    {
        same_size(&format!("{at}.reasoning.encrypted_bytes"), bytes, expand(encrypted)?.len())?;
    }
    Ok(())
}

/// Checks a text within a prompt: plain text, a recipe, or an object with its size.
fn prompt_text(c: &mut Checker, at: &str, v: &Value) -> Result<(), CaseError> {
    if v.get("bytes").is_none() {
        return c.text(at, v);
    }
    c.closed(at, v, SIZED_TEXT)?;
    exactly_one(at, v, &["text", "segments"])?;
    sized(at, v)?;
    segments(at, v, 0)
}

/// Returns the number of bytes around the segments of a summary in the history.
fn bytes_around(case: &Case) -> usize {
    let bytes = |name: &str| case.constants.get(name).and_then(|c| c["bytes"].as_u64());
    ["summary_head", "summary_tail"].iter().filter_map(|n| bytes(n)).sum::<u64>() as usize
}

/// Checks that segments have their stated sizes, and that the sizes add up.
fn segments(at: &str, v: &Value, bytes_around: usize) -> Result<(), CaseError> {
    let mut sum = bytes_around;
    for (i, s) in list(v, "segments") {
        let at = format!("{at}.segments[{i}]");
        exactly_one(&at, s, &["text", "constant", "files"])?;
        sized(&at, s)?;
        sum += s["bytes"].as_u64().unwrap_or(0) as usize;
    }
    if v.get("segments").is_some() {
        same_size(&format!("{at}.bytes"), &v["bytes"], sum)?;
    }
    Ok(())
}

/// Checks an entry of a request: an item, its number among the items of the case, or the first and
/// last of several numbers.
fn listed(c: &mut Checker, at: &str, entry: &Value, case: &Case) -> Result<(), CaseError> {
    let items = case.items.len();
    match span(entry) {
        Some((first, last)) if first <= last && last < items => Ok(()),
        None if entry.is_object() => item(c, at, entry, bytes_around(case)),
        _ => {
            let what = format!("an item, a number below {items}, or the first and last of several");
            Err(odd(at, what, entry))
        }
    }
}

fn item(c: &mut Checker, at: &str, item: &Value, bytes_around: usize) -> Result<(), CaseError> {
    c.closed(at, item, ITEM)?;
    for name in ["prior_summary", "focus"] {
        if let Some(words) = item.get(name).filter(|p| !p.is_null()) {
            prompt_text(c, &format!("{at}.{name}"), words)?;
        }
    }
    let forms = ["text", "sha256", "parts", "transcript", "constant", "segments", "unstable"];
    exactly_one(at, item, &forms)?;
    segments(at, item, bytes_around)?;
    let kind = item["kind"].as_str().unwrap_or("");
    if item.get("constant").is_some() && !CONSTANT_KINDS.contains(&kind) {
        return Err(odd(
            &format!("{at}.constant"),
            format!("only items of the kinds {}", CONSTANT_KINDS.join(", ")),
            kind,
        ));
    }
    if let Some(sizes) = item["parts"].as_array() {
        let bytes = item["bytes"].as_array().map_or(1, Vec::len);
        if sizes.len() != bytes {
            return Err(odd(
                &format!("{at}.parts"),
                format!("{bytes} parts, as `bytes` has sizes"),
                sizes.len(),
            ));
        }
    }
    for (i, p) in list(item, "parts") {
        exactly_one(&format!("{at}.parts[{i}]"), p, &["text", "sha256"])?;
    }
    let Some(t) = item.get("transcript") else { return Ok(()) };
    let at_t = format!("{at}.transcript");
    exactly_one(&at_t, t, &["text", "sha256"])?;
    sized(&at_t, t)?;
    let mut joined = 0;
    for (i, p) in list(t, "parts") {
        let at = format!("{at_t}.parts[{i}]");
        exactly_one(&at, p, &["text", "sha256"])?;
        sized(&at, p)?;
        // A blank line separates the parts.
        joined += p["bytes"].as_u64().unwrap_or(0) as usize + if i > 0 { 2 } else { 0 };
    }
    if t.get("parts").is_some() {
        same_size(&format!("{at_t}.bytes"), &t["bytes"], joined)?;
    }
    if let Some(constant) = item.get("constant_bytes").and_then(Value::as_u64) {
        let size = |name: &str| match item.get(name).filter(|p| !p.is_null()) {
            None => Ok(0),
            Some(v) if v.get("bytes").is_some() => Ok(v["bytes"].as_u64().unwrap_or(0) as usize),
            Some(v) => expand(v).map(|t| t.len()),
        };
        let (prior, focus) = (size("prior_summary")?, size("focus")?);
        let sum = constant as usize + t["bytes"].as_u64().unwrap_or(0) as usize + prior + focus;
        same_size(&format!("{at}.bytes"), &item["bytes"], sum)?;
    }
    Ok(())
}

fn list<'a>(v: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    v.get(name).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// Checks that a text has its stated size.
fn sized(at: &str, v: &Value) -> Result<(), CaseError> {
    let Some(t) = v.get("text") else { return Ok(()) };
    same_size(&format!("{at}.bytes"), &v["bytes"], expand(t)?.len())
}

fn same_size(at: &str, given: &Value, bytes: usize) -> Result<(), CaseError> {
    if given.as_u64() == Some(bytes as u64) {
        Ok(())
    } else {
        Err(odd(at, format!("{bytes} bytes, the size of the text"), given))
    }
}
