//! Threads of Amp (`~/.local/share/amp/threads/T-ID.json`; since April 2026 the output of
//! `amp threads export T-ID`), whose messages have nearly Anthropic's blocks.
//!
//! Rules, where the format leaves a choice:
//! - `usage` of a message is that of its call. `usageLedger` repeats the same calls.
//! - Of GPT models, the fresh part of the prompt is recorded as written to the cache.

use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "Amp",
    name: "amp",
    untold: "times of the user's messages, dollars, system prompt and tools, compactions and subagents",
    sniff: |head| head.value().as_object().is_some_and(is_thread),
    read,
    parts: no_parts,
};

fn is_thread(o: &Map<String, Value>) -> bool {
    str_of(o, "id").is_some_and(|id| id.starts_with("T-")) && o.contains_key("messages")
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let document = Document::from_source(source)?;
    let members = document.members()?;
    let mut reader = MessageReader::default();
    (reader.out.id, reader.out.title) = (members.text("id"), members.text("title"));
    let thread = reader.out.id.clone().unwrap_or_default();
    let mut began = Some(members.value("created"));
    for RecordedLine { number, mut object } in
        document.objects(members.raw("messages"), &mut reader.out)
    {
        let blocks = list_of(&object, "content").iter().map(block).collect();
        let usage = object.remove("usage").unwrap_or_default();
        let call = format!("{thread} {}", object.get("messageId").unwrap_or(&Value::Null));
        reader.counters = usage.as_object().map(|usage| counters(usage).called(&*call));
        let time = usage.get("timestamp").cloned().or_else(|| began.take());
        let more = [
            ("content", blocks),
            ("model", usage.get("model").cloned().unwrap_or_default()),
            ("timestamp", time.unwrap_or_default()),
        ];
        object.extend(more.map(|(key, value)| (key.to_string(), value)));
        reader.item(number, &object);
    }
    sink(Ok(reader.out))
}

fn counters(usage: &Map<String, Value>) -> Counters {
    let names = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
    let all = Counters::read(usage, names);
    let is_gpt = str_of(usage, "model").is_some_and(|name| name.starts_with("gpt"));
    match is_gpt && all.input == 0 {
        true => Counters { input: all.write, write: 0, ..all },
        false => all,
    }
}

/// Gives a result the names of Anthropic's API.
fn block(block: &Value) -> Value {
    let run = &block["run"];
    if block["type"] != "tool_result" {
        return block.clone();
    }
    let result = &run["result"];
    let texts = [result, &result["content"], &result["output"], &run["error"]["message"]];
    let output = texts.into_iter().find(|v| v.is_string()).cloned();
    let output = output.or_else(|| (!result.is_null()).then(|| json!(result.to_string())));
    json!({"type": "tool_result", "tool_use_id": block["toolUseID"], "content": output,
        "is_error": run["status"] == "error"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_several_forms_and_gpt_writes_nothing() {
        let result = |run: Value| {
            block(&json!({"type": "tool_result", "toolUseID": "t", "run": run}))["content"].clone()
        };
        assert_eq!(result(json!({"result": "a"})), "a");
        assert_eq!(result(json!({"result": {"output": "b", "exitCode": 0}})), "b");
        assert_eq!(result(json!({"status": "error", "error": {"message": "c"}})), "c");
        assert_eq!(result(json!({"result": ["d"]})), "[\"d\"]");
        let usage = json!({"model": "gpt-5.4", "inputTokens": 0, "outputTokens": 7,
            "cacheCreationInputTokens": 500, "cacheReadInputTokens": 900});
        let c = counters(usage.as_object().unwrap());
        assert_eq!([c.input, c.read, c.write, c.output], [500, 900, 0, 7]);
    }
}
