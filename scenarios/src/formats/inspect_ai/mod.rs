//! Logs of inspect_ai: `.eval` archives with a file per sample, and `.json` documents. Each sample
//! is a session.
//!
//! Rules, where the format leaves a choice:
//! - `messages` of a sample are the conversation: its agents keep the whole history there and show
//!   the model a compacted copy. An event `model` belongs to the reply with the id of its output.
//! - Counters contain the tokens read from the cache where `total_tokens` is the sum of input and
//!   output, and do not where it is larger. Answers from inspect_ai's own cache have no counters.
//! - A `compaction` is placed where its event is among the replies. A message marked as summary is
//!   its summary, and the call before it that is not a reply wrote that.

mod messages;
mod sample;

use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "inspect_ai",
    name: "inspect-ai",
    untold: "times of messages that are no replies, what a compaction trimmed or cleared, and calls \
             of scorers and of agents whose messages are no part of the sample's",
    sniff,
    parts: no_parts,
    read,
};

/// Members of an archive that describe its task: the final one, and the one during the run.
const HEADERS: [&str; 2] = ["header.json", "_journal/start.json"];

fn sniff(head: &Head) -> bool {
    if let Some(members) = &head.members {
        return HEADERS.iter().any(|h| members.iter().any(|m| m == h));
    }
    let value = head.value();
    value.pointer("/eval/task").is_some_and(Value::is_string) && value.get("version").is_some()
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    match source.archive()? {
        Some(archive) => {
            let names = archive.names();
            let header = HEADERS.iter().find(|h| names.iter().any(|n| n == *h));
            // Only its model name is used.
            let log = header.map(|name| archive.member(name)).transpose()?;
            let log = log.as_ref().map(|log| log.text()).transpose()?.unwrap_or_default();
            let model = model_of(&escapes::from_str(log).unwrap_or_default());
            for name in names {
                let Some(inner) = name.strip_prefix("samples/") else { continue };
                let read = match inner.split_once('/') {
                    None if inner.ends_with(".json") => archive.member(name).and_then(|member| {
                        let text = member.text()?;
                        sample::read(&Document::new(text, member.name()), model.as_deref())
                    }),
                    Some((_, "sample.json")) => {
                        let what = "a sample in chunks (log version 3)";
                        let fix = "convert the log with `inspect log convert`";
                        let called = format!("{}/{name}", source.name());
                        Err(InputError::new(1, what, "a sample in one file", fix).at(&called))
                    }
                    _ => continue,
                };
                sink(read)?;
            }
        }
        None => {
            let document = Document::from_source(source)?;
            let members = document.members()?;
            let model = model_of(&json!({"eval": members.value("eval")}));
            for one in document.items(members.raw("samples")) {
                sink(sample::read(&one, model.as_deref()))?;
            }
        }
    }
    Ok(())
}

fn model_of(log: &Value) -> Option<String> {
    log.pointer("/eval/model")?.as_str().map(|m| bare(m).to_string())
}

/// Returns a model name without the provider prefix.
fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

#[cfg(test)]
mod tests;
