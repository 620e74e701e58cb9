//! Recorded results of single functions of Aider.

use super::chunks::Chunks;
use super::markdown::{MarkdownSpeaker, append, append_start, split_chat_history_markdown};
use super::summary::tests::{Counter, summarize};
use super::summary::{
    ChatLine, Ending, LineContent, OBSERVED, SummaryRules, TokenCount, head_limit, quoted,
    summarize_end, too_big, transcript,
};
use crate::testing::{check, recorded};
use serde_json::{Value, json};

fn check_all(name: &str, function: impl Fn(&Value) -> Value) {
    check(&format!("aider/0.86.2/{name}.json"), function);
}

fn list(v: &Value) -> Vec<Value> {
    v.as_array().cloned().unwrap_or_default()
}

/// Formats a value as Python's `json.dumps` does.
fn python_json(v: &Value) -> String {
    match v {
        Value::String(s) => quoted(s),
        Value::Array(all) => {
            format!("[{}]", all.iter().map(python_json).collect::<Vec<_>>().join(", "))
        }
        Value::Object(o) => {
            let member = |(k, v): (&String, &Value)| format!("{}: {}", quoted(k), python_json(v));
            format!("{{{}}}", o.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn messages(v: &Value) -> Vec<ChatLine> {
    let content = |v: &Value| match v {
        Value::String(t) => LineContent::Text(t.as_str().into()),
        Value::Null => LineContent::Null,
        parts => LineContent::Parts(python_json(parts)),
    };
    let line = |m: &Value| ChatLine {
        role: m["role"].as_str().unwrap().into(),
        content: content(&m["content"]),
    };
    list(v).iter().map(line).collect()
}

fn written(all: &[ChatLine]) -> Value {
    let content = |c: &LineContent| match c {
        LineContent::Text(t) => json!(**t),
        LineContent::Null => Value::Null,
        LineContent::Parts(p) => serde_json::from_str(p).unwrap(),
    };
    all.iter().map(|m| json!({"role": m.role, "content": content(&m.content)})).collect()
}

/// The scripted models of a recording (`model_rule`), and their calls.
struct Summariser {
    models: Vec<Value>,
    system: Value,
    calls: Vec<Value>,
}

impl Summariser {
    fn new(i: &Value, constants: &Value) -> Summariser {
        let mut models = list(&i["models"]);
        if models.is_empty() {
            models.push(json!({}));
        }
        Summariser { models, system: constants["summarize_prompt"].clone(), calls: vec![] }
    }

    /// Asks the models one after the other.
    fn ask(&mut self, text: &str) -> Option<String> {
        self.models.iter().find_map(|m| {
            let name = m["name"].as_str().unwrap_or("fake");
            let mut call = json!({"model": name, "system": self.system, "user": text});
            let behaviour = m["behaviour"].as_str().unwrap_or("ok");
            let answer = (behaviour == "ok").then(|| {
                let summary = m["summary"].as_str().unwrap_or("SUMMARY {n} ({chars} chars)");
                let summary = summary
                    .replace("{n}", &(self.calls.len() + 1).to_string())
                    .replace("{chars}", &text.chars().count().to_string());
                format!("{summary:x<0$}", m["pad"].as_u64().unwrap_or(0) as usize)
            });
            match behaviour {
                "raise" => call["raised"] = json!(true),
                _ => call["returned"] = json!(answer),
            }
            self.calls.push(call);
            answer
        })
    }

    /// Returns the rules with the input limit of the first model.
    fn rules(&self, i: &Value, constants: &Value) -> SummaryRules {
        SummaryRules {
            max_tokens: i["max_tokens"].as_f64().unwrap(),
            head_limit: head_limit(self.models[0]["max_input_tokens"].as_u64(), 1.0),
            prefix: constants["summary_prefix"].as_str().unwrap().into(),
            split_rules: OBSERVED,
        }
    }
}

#[test]
fn histories_are_summarised_as_recorded() {
    let constants = &recorded("aider/0.86.2/summarize.json")["constants"];
    check_all("summarize", |i| {
        let all = messages(&i["messages"]);
        let count = Counter { json: i["count"] == "json" };
        let mut model = Summariser::new(i, constants);
        let rules = model.rules(i, constants);
        let big = too_big(&all, rules.max_tokens, &count);
        let mut out =
            json!({"total_tokens": count.list(&all), "too_big": big, "input_mutated": false});
        match i["entry"].as_str().unwrap() {
            "summarize" => match summarize(&all, &rules, &count, &mut |t| model.ask(t)) {
                Ok(s) => {
                    out["result"] = written(&s.messages);
                    out["input_mutated"] = json!(s.input_changed);
                    out["max_depth"] = json!(s.depth);
                }
                Err(e) => {
                    out["error"] = json!(e.cause);
                    out["max_depth"] = json!(e.depth);
                }
            },
            "summarize_all" => {
                let summary = model.ask(&transcript(&all).unwrap()).unwrap();
                let line = ChatLine::text("user", format!("{}{summary}", rules.prefix));
                out["result"] = written(&[line]);
            }
            _ => out["result"] = json!(big),
        }
        out["calls"] = model.calls.into();
        out
    });
}

#[test]
fn background_summaries_end_as_recorded() {
    let constants = &recorded("aider/0.86.2/turn_thread.json")["constants"];
    check_all("turn_thread", |i| {
        let before = [messages(&i["done"]), messages(&i["cur"])].concat();
        let mut done = before.clone();
        if let Some(text) = i["message"].as_str() {
            done.extend([ChatLine::text("user", text), ChatLine::text("assistant", "Ok.")]);
        }
        let snapshot = if i["snapshot"] == "after_append" { done.clone() } else { before.clone() };
        let count = Counter { json: i["count"] == "json" };
        let mut model = Summariser::new(i, constants);
        let rules = model.rules(i, constants);
        assert!(too_big(&before, rules.max_tokens, &count), "a worker starts");
        let summarised = summarize(&snapshot, &rules, &count, &mut |t| model.ask(t));
        let (outcome, done) =
            match summarize_end(&done, &snapshot, summarised.ok().map(|s| s.messages), true) {
                Ending::Applied(new) => ("summary_applied", new),
                Ending::Discarded => ("summary_discarded_full_history_kept", done),
                Ending::Emptied => ("history_emptied", vec![]),
            };
        json!({"outcome": outcome, "summarizer_calls": model.calls.len(), "done": written(&done)})
    });
}

#[test]
fn the_history_file_is_as_recorded() {
    let read = |file: &str, include_tool| -> Value {
        let all = split_chat_history_markdown(file, include_tool);
        all.into_iter().map(|(who, text)| json!({"role": who.word(), "content": text})).collect()
    };
    check_all("split_markdown", |i| {
        read(i["text"].as_str().unwrap(), i["include_tool"].as_bool().unwrap())
    });
    check_all("markdown_roundtrip", |i| {
        let mut file = String::new();
        for turn in list(&i["turns"]) {
            let text = turn[1].as_str().unwrap();
            match turn[0].as_str().unwrap() {
                "start" => append_start(&mut file, text),
                "user" => append(&mut file, MarkdownSpeaker::User, text),
                "assistant" => append(&mut file, MarkdownSpeaker::Assistant, text),
                _ => append(&mut file, MarkdownSpeaker::Tool, text),
            }
        }
        let (messages, with_tool) = (read(&file, false), read(&file, true));
        json!({"markdown": file, "messages": messages, "messages_with_tool": with_tool})
    });
}

#[test]
fn breakpoints_are_set_as_recorded() {
    check_all("cache_headers", |i| {
        let part = |name: &str| list(&i["chunks"][name]);
        let chunks = Chunks {
            system: part("system"),
            examples: part("examples"),
            readonly_files: part("readonly_files"),
            repo: part("repo"),
            done: part("done"),
            chat_files: part("chat_files"),
            cur: part("cur"),
            reminder: part("reminder"),
        };
        let mut all = chunks.all();
        for at in chunks.breakpoints() {
            let text = all[at]["content"].take();
            all[at]["content"] =
                json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        }
        let cacheable = chunks.breakpoints().last().map_or(all.len(), |last| last + 1);
        json!({"cacheable_messages": all[..cacheable], "all_messages": all})
    });
}
