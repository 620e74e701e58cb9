//! Sessions of Cline since 4.1 and of its command line since 3: `ID.messages.json`, with the manifest
//! `ID.json` and `ID.compaction.json`, what the newest compaction sends in place of the first messages.
//! The input of each reply includes the tokens read and written.

use crate::formats::prelude::*;
use std::path::PathBuf;

pub(super) fn is_session(value: &Value) -> bool {
    ["version", "agent", "sessionId", "messages"].iter().all(|key| value.get(key).is_some())
}

/// Returns the manifest and the compaction next to the messages, where they exist.
pub(super) fn companions(input: &Source<'_>) -> [Option<PathBuf>; 2] {
    let folder = input.folder();
    let name = unpacked(input.name()).rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.strip_suffix(".messages.json");
    [".json", ".compaction.json"]
        .map(|end| input.companion(&folder.as_deref()?.with_file_name(format!("{}{end}", stem?))))
}

pub(super) fn read(source: &Source<'_>, document: &Document<'_>) -> Result<Recording, InputError> {
    let members = document.members()?;
    let mut reader = MessageReader::default();
    let messages = document.objects(members.raw("messages"), &mut reader.out);
    let beside = companions(source);
    let [manifest, compaction] =
        beside.each_ref().map(|path| super::json_of(source, path.as_deref()?, &mut reader.out));
    let session = members.text("sessionId").unwrap_or_default();
    if let Some(system) = members.text("system_prompt") {
        reader.push(1, None, StepKind::System(system));
    }
    let compacted = compaction.as_ref().and_then(|c| c["source_message_count"].as_u64());
    for (n, RecordedLine { number, mut object }) in (0..).zip(messages) {
        if compacted == Some(n) {
            reader.push(number, None, summary(compaction.as_ref()));
        }
        let model = string(object_in(&object, "modelInfo"), "id");
        object.extend(model.map(|name| ("model".to_string(), json!(name))));
        let id = format!("{session} {}", str_of(&object, "id").unwrap_or_default());
        reader.counters = object_of(&object, "metrics").map(|metrics| {
            let names = ["inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"];
            let mut counters = Counters::read(metrics, names).of_whole_prompt();
            counters.billing.told_usd = cost(metrics.get("cost"));
            counters.called(&*id)
        });
        reader.item(number, &object);
    }
    let title = manifest.as_ref().and_then(|m| m["metadata"]["title"].as_str()).map(str::to_string);
    let is_lead = members.text("agent").is_some_and(|agent| agent == "lead");
    let id = Some(session).filter(|id| is_lead && !id.is_empty());
    Ok(Recording { id, title, beside: beside.into_iter().flatten().collect(), ..reader.out })
}

/// Returns the compaction of a session.
fn summary(compaction: Option<&Value>) -> StepKind {
    let told = compaction.and_then(|c| {
        let messages = c["messages"].as_array()?.iter();
        messages.map(|m| &m["metadata"]).find(|m| m["kind"] == "compaction_summary")
    });
    StepKind::Compaction(RecordingCompaction {
        pre_tokens: told.and_then(|m| tokens(&m["tokensBefore"])),
        summary: told.and_then(|m| m["summary"].as_str()).map(str::to_string),
        ..RecordingCompaction::default()
    })
}
