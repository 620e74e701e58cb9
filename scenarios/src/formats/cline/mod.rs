//! Tasks of Cline and of its descendants Roo Code and Kilo Code: a folder with
//! `api_conversation_history.json`, the messages as they are sent, and `ui_messages.json`, in which
//! each request has its counters and its cost; `task_metadata.json` has the models. `ui.rs` reads tasks
//! without the former, `sdk.rs` sessions of newer versions of Cline.
//!
//! Rules, where the format leaves a choice:
//! - `tokensIn` is the prompt without its cached part in Cline, and all of it for some of its
//!   providers, in Roo Code since 3.29.5 and in Kilo Code since 4.119.0. If it is less than the
//!   cached part, it cannot include it.
//! - The message with a summary, or that marks what was cut, is the compaction. Its sizes and its cost
//!   are in the event with the same id, or whose summary it contains. Cline marks nothing; from a request
//!   on, its events name the messages that it left out.
//! - A reply belongs to the newest request before it that has no reply yet, by their times; without
//!   times, the newest reply belongs to the newest request. Requests without a reply, and those that
//!   were deleted (`deleted_api_reqs`, their sum) or subagents made (`subagent_usage`), were billed
//!   too.
//! - The model of a reply is its own (`modelInfo`), or else the newest that the metadata, or the details
//!   of the environment in a message, name before it.

mod sdk;
mod ui;

use crate::formats::prelude::*;
use std::path::{Path, PathBuf};

pub(super) const FORMAT: Format = Format {
    title: "Cline",
    name: "cline",
    untold: "system prompt and tools, and which messages Cline left out of a prompt when it \
             shortened the conversation",
    sniff,
    read,
    parts: |input| {
        let own = input.folder();
        let all = companions(input).into_iter().chain(sdk::companions(input)).flatten();
        all.filter(|path| Some(&**path) != own.as_deref()).collect()
    },
};

const HISTORY: &str = "api_conversation_history.json";
fn sniff(head: &Head) -> bool {
    let mut messages = head.value().as_array().into_iter().flatten();
    head.name == HISTORY
        || messages.any(|m| m.pointer("/modelInfo/modelId").is_some())
        || head.value()[0].as_object().is_some_and(ui::is_message)
        || sdk::is_session(head.value())
}

/// Returns `ui_messages.json` and `task_metadata.json` beside a task, where they exist.
fn companions(input: &Source<'_>) -> [Option<PathBuf>; 2] {
    let folder = input.folder();
    let folder = folder.as_deref().and_then(Path::parent);
    ["ui_messages.json", "task_metadata.json"].map(|name| input.companion(&folder?.join(name)))
}

struct BilledRequest {
    at_ms: Option<u64>,
    counters: Counters,
    /// Whether it left out messages that the request before it had.
    is_cut: bool,
}

impl BilledRequest {
    /// Returns whether more than its cost is known.
    fn is_counted(&self) -> bool {
        self.counters.context() > 0
    }
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let document = Document::from_source(source)?;
    if document.text.trim_start().starts_with('{') {
        return sink(sdk::read(source, &document));
    }
    let mut out = Recording::default();
    let messages = document.objects(Some(document.raw()?), &mut out);
    let beside = companions(source);
    let [ui, metadata] = beside.each_ref().map(|path| json_of(source, path.as_deref()?, &mut out));
    let named = source.folder().and_then(|f| Some(f.parent()?.file_name()?.to_owned()));
    out.id = named.map(|name| name.to_string_lossy().into_owned());
    // A copy of the task may have another folder.
    let id = |began: Option<u64>| began.map(|ms| ms.to_string()).or(out.id.clone());
    if let Some(first) = messages.first().filter(|m| ui::is_message(&m.object)) {
        let id = id(time_ms(first)).unwrap_or_default();
        out.steps = ui::steps(&messages, &id, metadata.as_ref());
        return sink(Ok(out));
    }
    let ui = ui.unwrap_or_default();
    let id = id(ui.pointer("/0/ts").and_then(Value::as_u64)).unwrap_or_default();
    out.beside = beside.into_iter().flatten().collect();
    let all = [&["api_req_started"][..], &["deleted_api_reqs", "subagent_usage"]];
    let [requests, sums] = all.map(|says| requests(&ui, says, &id));
    let mut models = metadata.map(|m| models(&m)).unwrap_or_default();
    models.extend(messages.iter().filter_map(|m| Some((time_ms(m).unwrap_or(0), model_told(m)?))));
    out.title = messages.first().and_then(title);
    out.steps = steps(messages, requests, sums, &models, &|m| compaction(m, &ui, &id));
    sink(Ok(out))
}

fn time_ms(message: &RecordedLine) -> Option<u64> {
    message.object.get("ts").and_then(Value::as_u64)
}

fn text_in(message: &RecordedLine) -> String {
    text_of(&content(message.object.get("content")))
}

/// Returns the first line of the task.
fn title(message: &RecordedLine) -> Option<String> {
    let line = first_line(text_in(message).split_once("<task>")?.1)?;
    Some(line.chars().take(80).collect())
}

/// Returns the model that a message of Roo Code or Kilo Code names in its details.
fn model_told(message: &RecordedLine) -> Option<String> {
    let text = text_in(message);
    let (_, details) = text.split_once("# Current Mode")?;
    Some(details.split_once("<model>")?.1.split_once("</model>")?.0.to_string())
}

/// Reads a companion file, as far as it is whole.
fn json_of(source: &Source<'_>, path: &Path, notes: &mut Recording) -> Option<Value> {
    let file = source.open_companion(path).ok()?;
    file.text().ok()?;
    file.mend().into_iter().for_each(|line| notes.cut_off(file.name(), line));
    let read = escapes::from_str(file.text().ok()?);
    if let Err(e) = &read {
        let (name, line) = (file.name(), e.line().max(1));
        notes.warnings.push(format!("{name}:{line}: not readable as JSON ({e}); left out"));
    }
    read.ok()
}

/// Returns the requests of these kinds in order. The messages after a request name what it left out.
fn requests(ui: &Value, says: &[&str], task: &str) -> Vec<BilledRequest> {
    let mut out: Vec<BilledRequest> = Vec::new();
    let mut left_out = None;
    for m in ui.as_array().into_iter().flatten().filter_map(Value::as_object) {
        if str_of(m, "say").is_some_and(|say| says.contains(&say)) {
            out.extend(request(m, task));
        }
        let range = m.get("conversationHistoryDeletedRange").filter(|range| range.is_array());
        if let Some(request) = out.last_mut().filter(|_| range.is_some() && range != left_out) {
            (request.is_cut, left_out) = (true, range);
        }
    }
    out
}

/// Returns a request, which says its counters as JSON in a text. `None` if they are all 0 and it cost
/// nothing.
fn request(m: &Map<String, Value>, task: &str) -> Option<BilledRequest> {
    let told: Map<String, Value> = escapes::from_str(str_of(m, "text")?).ok()?;
    let mut counters =
        Counters::read(&told, ["tokensIn", "cacheReads", "cacheWrites", "tokensOut"]);
    if counters.input >= counters.read.saturating_add(counters.write) && is_whole(&told, m) {
        counters = counters.of_whole_prompt();
    }
    counters.billing.told_usd = cost(told.get("cost"));
    if counters.context() == 0 && counters.billing.told_usd.is_none() {
        return None;
    }
    let at_ms = m.get("ts").and_then(Value::as_u64);
    let name = format!("{task} {}", at_ms.unwrap_or_default());
    Some(BilledRequest { at_ms, counters: counters.called(&*name), is_cut: false })
}

/// Returns whether the input of a request includes the tokens read and written.
fn is_whole(told: &Map<String, Value>, m: &Map<String, Value>) -> bool {
    /// Providers for which Cline counts so.
    const WITH_CACHE: &[&str] =
        &["openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "xai", "zai"];
    /// Days of release of Roo Code 3.29.5 and Kilo Code 4.119.0 in 2025, ms: 1 and 12 November.
    const ROO: u64 = 1_761_955_200_000;
    const KILO: u64 = 1_762_905_600_000;
    let since = if told.contains_key("inferenceProvider") { KILO } else { ROO };
    match str_of(told, "apiProtocol") {
        Some("anthropic") => m.get("ts").and_then(Value::as_u64).is_some_and(|ms| ms >= since),
        Some(_) => true,
        None => str_of(object_in(m, "modelInfo"), "providerId")
            .is_some_and(|id| WITH_CACHE.contains(&id)),
    }
}

/// Returns the compaction that a message is, or `None` for other messages.
fn compaction(message: &RecordedLine, ui: &Value, task: &str) -> Option<StepKind> {
    let o = &message.object;
    if !flag(o, "isSummary") && !flag(o, "isTruncationMarker") {
        return None;
    }
    let text = text_in(message);
    let ids = ["condenseId", "truncationId"];
    let id = ids.iter().find_map(|key| str_of(o, key));
    let is_of = |change: &Map<String, Value>| match id {
        None => str_of(change, "summary").is_some_and(|summary| text.contains(summary)),
        own => ids.iter().any(|key| str_of(change, key) == own),
    };
    let events = ui.as_array().into_iter().flatten().filter_map(Value::as_object);
    let found = events.flat_map(|m| {
        let changes = ["contextCondense", "contextTruncation"].map(|key| object_in(m, key));
        let ms = m.get("ts").and_then(Value::as_u64);
        changes.into_iter().filter(|change| is_of(change)).map(move |change| (ms, change))
    });
    Some(change(found.last(), Some(text), task))
}

/// Returns the compaction with this summary. Its event, if there is one, has a time in ms.
fn change(
    event: Option<(Option<u64>, &Map<String, Value>)>,
    summary: Option<String>,
    task: &str,
) -> StepKind {
    let (ms, event) = event.unzip();
    let told = |key: &str| event?.get(key);
    let reply = cost(told("cost")).map(|usd| {
        let name = format!("{task} condense {:?}", ms.flatten());
        let billing = Billing { told_usd: Some(usd), ..Billing::default() }.into();
        let counters = Counters { billing, ..Counters::default() };
        Box::new(RecordingReply::of_counters(name, None, counters))
    });
    StepKind::Compaction(RecordingCompaction {
        pre_tokens: told("prevContextTokens").and_then(tokens),
        post_tokens: told("newContextTokens").and_then(tokens),
        summary,
        reply,
        ..RecordingCompaction::default()
    })
}

/// Returns the models of a task with the times from which they were used.
fn models(metadata: &Value) -> Vec<(u64, String)> {
    let Some(metadata) = metadata.as_object() else { return vec![] };
    let used = |m: &Map<String, Value>| {
        Some((m.get("ts").and_then(Value::as_u64)?, string(m, "model_id")?))
    };
    objects(metadata, "model_usage").filter_map(used).collect()
}

fn steps(
    messages: Vec<RecordedLine>,
    requests: Vec<BilledRequest>,
    sums: Vec<BilledRequest>,
    models: &[(u64, String)],
    compaction: &dyn Fn(&RecordedLine) -> Option<StepKind>,
) -> Vec<RecordingStep> {
    let is_reply = |m: &RecordedLine| {
        str_of(&m.object, "role") == Some("assistant") && !flag(&m.object, "isSummary")
    };
    let model_at = |ms: Option<u64>| {
        let before = models.iter().filter(|(from, _)| ms.is_none_or(|ms| *from <= ms));
        before.max_by_key(|(from, _)| *from).map(|(_, name)| name.clone())
    };
    let replies = messages.iter().filter(|m| is_reply(m)).count();
    let mut without_reply = requests.len().saturating_sub(replies);
    let mut reader = MessageReader::default();
    let mut requests = requests.into_iter().peekable();
    for message in messages {
        let (number, ms) = (message.number, time_ms(&message));
        if let Some(compaction) = compaction(&message) {
            reader.push(number, ms.and_then(|ms| time::of_epoch(ms as f64)), compaction);
            continue;
        }
        let mut request = None;
        while is_reply(&message)
            && let Some(next) = requests.next_if(|next| ms.is_none() || next.at_ms <= ms)
        {
            if let Some(unanswered) = request.replace(next) {
                reader.out.steps.push(alone(number, unanswered, &model_at));
            }
            if ms.is_none() {
                if without_reply == 0 {
                    break;
                }
                without_reply -= 1;
            }
        }
        if request.as_ref().is_some_and(|request| request.is_cut) {
            reader.push(number, None, StepKind::Compaction(RecordingCompaction::default()));
        }
        if let Some(paid) = request.take_if(|request| !request.is_counted()) {
            reader.out.steps.push(alone(number, paid, &model_at));
        }
        let mut object = message.object;
        let told = string(object_in(&object, "modelInfo"), "modelId");
        let model = told.or_else(|| model_at(ms));
        object.extend(model.map(|name| ("model".to_string(), json!(name))));
        reader.counters = request.map(|request| request.counters);
        reader.item(number, &object);
    }
    let line = reader.out.steps.last().map_or(1, |step| step.line);
    let rest = requests.chain(sums).map(|request| alone(line, request, &model_at));
    reader.out.steps.extend(rest.collect::<Vec<_>>());
    reader.out.steps
}

/// Returns a request without a reply in the conversation.
fn alone(
    line: usize,
    request: BilledRequest,
    model_at: &dyn Fn(Option<u64>) -> Option<String>,
) -> RecordingStep {
    let BilledRequest { at_ms, counters, .. } = request;
    let response = counters.billing.call_id.as_deref().map(str::to_string);
    let reply = RecordingReply {
        model: model_at(at_ms),
        counters: Ok(counters),
        ..RecordingReply::new(response, vec![])
    };
    RecordingStep::of_call(line, at_ms.and_then(|ms| time::of_epoch(ms as f64)), reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"[
{"role": "user", "content": [{"type": "text", "text": "find the port"}], "ts": 1000},
{"role": "assistant", "content": [{"type": "text", "text": "I look."}], "modelInfo": {"modelId": "claude-opus-4-5"}, "ts": 2000},
{"role": "user", "content": "go on", "ts": 3000},
{"role": "assistant", "content": "8443", "ts": 9000}]"#;

    fn ui(requests: &[(u64, u64)]) -> String {
        let request = |(ts, tokens): &(u64, u64)| {
            let text = json!({"tokensIn": tokens, "tokensOut": 1, "cost": 0.5}).to_string();
            json!({"ts": ts, "say": "api_req_started", "text": text})
        };
        Value::Array(requests.iter().map(request).collect()).to_string()
    }

    fn inputs(messages: &str, requests: &[(u64, u64)]) -> Vec<(Option<String>, u64, View)> {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(HISTORY, messages);
        write("ui_messages.json", &ui(requests));
        write("task_metadata.json", r#"{"model_usage":[{"ts":2500,"model_id":"m2"}]}"#);
        let path = dir.path().join(HISTORY);
        let mut found = Vec::new();
        FORMAT.recordings(&Source::at(&path), &mut |one| {
            found.extend(one.unwrap().steps.into_iter().filter_map(|s| match s.what {
                StepKind::Reply(r) => Some((r.model, r.counters.unwrap().input, s.view)),
                _ => None,
            }));
            std::ops::ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn input_includes_the_cache_by_program_provider_and_date() {
        let cached = |ts: u64, told: Value, provider: &str| {
            let mut all = json!({"tokensIn": 900, "cacheReads": 600, "cacheWrites": 200});
            all.as_object_mut().unwrap().extend(told.as_object().unwrap().clone());
            let info = json!({"providerId": provider});
            let line = json!({"ts": ts, "say": "api_req_started", "modelInfo": info, "text": all.to_string()});
            requests(&json!([line]), &["api_req_started"], "t").remove(0).counters.input
        };
        let day = 86_400_000;
        let of_roo = json!({"apiProtocol": "anthropic"});
        let of_kilo = json!({"apiProtocol": "anthropic", "inferenceProvider": "Anthropic"});
        let november = 1_761_955_200_000;
        assert_eq!(cached(november, of_roo.clone(), ""), 100);
        assert_eq!(cached(november - 1, of_roo.clone(), ""), 900);
        assert_eq!(cached(november + 11 * day - 1, of_kilo.clone(), ""), 900);
        assert_eq!(cached(november + 11 * day, of_kilo, ""), 100);
        assert_eq!(cached(1, json!({"apiProtocol": "openai"}), ""), 100);
        assert_eq!(cached(november, json!({}), "anthropic"), 900);
        assert_eq!(cached(1, json!({}), "litellm"), 100);
        // Less than the cached part.
        let less = json!({"apiProtocol": "anthropic", "tokensIn": 799});
        assert_eq!(cached(november, less, ""), 799);
    }

    #[test]
    fn each_request_has_the_reply_after_it_and_its_model() {
        let model = |name: &str| Some(name.to_string());
        // The second request was repeated.
        let requests = [(1100, 7), (3100, 8), (3200, 9)];
        let expected = [
            (model("claude-opus-4-5"), 7, View::Both),
            (model("m2"), 8, View::Calls),
            (model("m2"), 9, View::Both),
        ];
        assert_eq!(inputs(MESSAGES, &requests), expected);
        let untimed = MESSAGES.replace(r#""ts""#, r#""no""#);
        let found = inputs(&untimed, &requests);
        assert_eq!(found.iter().map(|(_, n, _)| *n).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(found.iter().filter(|(.., v)| *v == View::Calls).count(), 1);
    }

    #[test]
    fn a_task_is_known_by_its_file_in_any_folder() {
        let text = r#"[{"role": "user", "content": "go", "ts": 1}]"#;
        let name = format!("tasks.zip/tasks/1/{HISTORY}");
        let found = crate::formats::detect(&Source::of_bytes(text.as_bytes(), &name)).unwrap();
        assert_eq!(found.name, "cline");
    }
}
