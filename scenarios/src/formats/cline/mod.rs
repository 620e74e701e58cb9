//! Tasks of Cline and of its descendants Roo Code and Kilo Code: a folder with
//! `api_conversation_history.json`, the messages as they are sent, and `ui_messages.json`, in which
//! each request has its counters and its cost; `task_metadata.json` has the models.
//!
//! Rules, where the format leaves a choice:
//! - A reply belongs to the newest request before it that has no reply yet, by their times; without
//!   times, the newest reply belongs to the newest request. Requests without a reply, and those that
//!   were deleted (`deleted_api_reqs`, their sum), were billed all the same.
//! - The model of a reply is its own (`modelInfo`), or else the newest that the metadata names before
//!   it.

use crate::formats::prelude::*;
use std::path::{Path, PathBuf};

pub(super) const FORMAT: Format = Format {
    title: "Cline",
    name: "cline",
    untold: "system prompt and tools, and which messages Cline left out of a prompt when it \
             shortened the conversation",
    sniff,
    read,
    parts: |input| companions(input).into_iter().flatten().collect(),
};

const HISTORY: &str = "api_conversation_history.json";
fn sniff(head: &Head) -> bool {
    let mut messages = head.value().as_array().into_iter().flatten();
    unpacked(&head.name) == HISTORY || messages.any(|m| m.pointer("/modelInfo/modelId").is_some())
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
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let text = source.text()?;
    let document = Document::new(&text, source.name());
    let mut out = Recording::default();
    let messages = document.objects(Some(document.raw()?), &mut out);
    let beside = companions(source);
    let [ui, metadata] =
        beside.each_ref().map(|path| path.as_deref().map(|path| json_of(source, path)));
    out.beside = beside.into_iter().flatten().collect();
    let named = source.folder().and_then(|f| Some(f.parent()?.file_name()?.to_owned()));
    out.id = named.map(|name| name.to_string_lossy().into_owned());
    let id = out.id.clone().unwrap_or_default();
    let ui = ui.flatten().unwrap_or_default();
    let [requests, deleted] =
        ["api_req_started", "deleted_api_reqs"].map(|say| requests(&ui, say, &id));
    let models = metadata.flatten().map(|m| models(&m)).unwrap_or_default();
    out.steps = steps(messages, requests, deleted, &models);
    sink(Ok(out))
}

fn json_of(source: &Source<'_>, path: &Path) -> Option<Value> {
    escapes::from_str(&source.open_companion(path).ok()?.text().ok()?).ok()
}

/// Returns the requests of this kind in order. Each says its counters as JSON in a text.
fn requests(ui: &Value, say: &str, task: &str) -> Vec<BilledRequest> {
    let is_of_kind = |m: &&Value| m["say"] == say;
    let request = |m: &Value| {
        let told: Map<String, Value> = escapes::from_str(m["text"].as_str()?).ok()?;
        let names = ["tokensIn", "cacheReads", "cacheWrites", "tokensOut"];
        let mut counters = Counters::read(&told, names);
        counters.billing.told_usd = cost(told.get("cost"));
        if counters.prompt() + counters.output == 0 {
            return None;
        }
        let at_ms = m["ts"].as_u64();
        let name = format!("{task} {}", at_ms.unwrap_or_default());
        Some(BilledRequest { at_ms, counters: counters.called(&*name) })
    };
    ui.as_array().into_iter().flatten().filter(is_of_kind).filter_map(request).collect()
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
    deleted: Vec<BilledRequest>,
    models: &[(u64, String)],
) -> Vec<RecordingStep> {
    let is_reply = |m: &RecordedLine| str_of(&m.object, "role") == Some("assistant");
    let at = |m: &RecordedLine| m.object.get("ts").and_then(Value::as_u64);
    let model_at = |ms: Option<u64>| {
        let before = models.iter().filter(|(from, _)| ms.is_none_or(|ms| *from <= ms));
        before.max_by_key(|(from, _)| *from).map(|(_, name)| name.clone())
    };
    let replies = messages.iter().filter(|m| is_reply(m)).count();
    let mut without_reply = requests.len().saturating_sub(replies);
    let mut reader = MessageReader::default();
    let mut requests = requests.into_iter().peekable();
    for message in messages {
        let (number, ms) = (message.number, at(&message));
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
        let mut object = message.object;
        let told = string(object_in(&object, "modelInfo"), "modelId");
        let model = told.or_else(|| model_at(ms));
        object.extend(model.map(|name| ("model".to_string(), json!(name))));
        object.extend(ms.and_then(time_of).map(|time| ("timestamp".to_string(), json!(time))));
        reader.counters = request.map(|request| request.counters);
        reader.item(number, &object);
    }
    let line = reader.out.steps.last().map_or(1, |step| step.line);
    let rest = requests.chain(deleted).map(|request| alone(line, request, &model_at));
    reader.out.steps.extend(rest.collect::<Vec<_>>());
    reader.out.steps
}

/// Returns a request without a reply in the conversation.
fn alone(
    line: usize,
    request: BilledRequest,
    model_at: &dyn Fn(Option<u64>) -> Option<String>,
) -> RecordingStep {
    let BilledRequest { at_ms, counters } = request;
    let response = counters.billing.call_id.as_deref().map(str::to_string);
    let reply = RecordingReply {
        model: model_at(at_ms),
        counters: Ok(counters),
        ..RecordingReply::new(response, vec![])
    };
    let stamp = at_ms.and_then(time_of);
    RecordingStep { view: View::Calls, ..RecordingStep::new(line, stamp, StepKind::Reply(reply)) }
}

fn time_of(ms: u64) -> Option<String> {
    time::of_millis(i64::try_from(ms).ok()?)
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

    fn counted(messages: &str, requests: &[(u64, u64)]) -> Vec<(Option<String>, u64, View)> {
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
    fn each_request_has_the_reply_after_it_and_its_model() {
        let model = |name: &str| Some(name.to_string());
        // The second request was repeated.
        let requests = [(1100, 7), (3100, 8), (3200, 9)];
        let expected = [
            (model("claude-opus-4-5"), 7, View::Both),
            (model("m2"), 8, View::Calls),
            (model("m2"), 9, View::Both),
        ];
        assert_eq!(counted(MESSAGES, &requests), expected);
        let untimed = MESSAGES.replace(r#""ts""#, r#""no""#);
        let found = counted(&untimed, &requests);
        assert_eq!(found.iter().map(|(_, n, _)| *n).collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(found.iter().filter(|(.., v)| *v == View::Calls).count(), 1);
    }
}
