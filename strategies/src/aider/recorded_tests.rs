//! Recorded results of single functions of Aider.

use super::chunks::Chunks;
use super::markdown::{append, append_start, split_chat_history_markdown};
use super::rules::{
    ChatLine, Ending, SummaryRules, TokenCount, ending, head_limit,
    tests::{BY_CONTENT, BY_JSON, summarize},
    transcript,
};
use crate::testing::{block, check, recorded};
use ctxbench_core::block::{BlockKind, Role};
use serde_json::{Value, json};

fn check_all(name: &str, function: impl Fn(&Value) -> Value) {
    check(&format!("aider/0.86.2/{name}.json"), function);
}

fn list(v: &Value) -> Vec<Value> {
    v.as_array().cloned().unwrap_or_default()
}

fn messages(v: &Value) -> Vec<ChatLine> {
    let line =
        |m: &Value| ChatLine::new(m["role"].as_str().unwrap(), m["content"].as_str().unwrap());
    list(v).iter().map(line).collect()
}

fn written(all: &[ChatLine]) -> Value {
    all.iter().map(|m| json!({"role": m.role, "content": *m.text})).collect()
}

fn count(i: &Value) -> TokenCount {
    if i["count"] == "json" { BY_JSON } else { BY_CONTENT }
}

fn total(all: &[ChatLine], count: TokenCount) -> u64 {
    all.iter().map(count.message).sum()
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
            count: count(i),
            described: false,
        }
    }
}

#[test]
fn histories_are_summarised_as_recorded() {
    let constants = &recorded("aider/0.86.2/summarize.json")["constants"];
    check_all("summarize", |i| {
        let all = messages(&i["messages"]);
        let mut model = Summariser::new(i, constants);
        let rules = model.rules(i, constants);
        let tokens = total(&all, rules.count);
        let big = tokens as f64 > rules.max_tokens;
        let mut out = json!({"total_tokens": tokens, "too_big": big, "input_mutated": false});
        match i["entry"].as_str().unwrap() {
            "summarize" => match summarize(&all, &rules, &mut |t| model.ask(t)) {
                Ok(s) => {
                    out["result"] = written(&s.messages);
                    out["input_mutated"] = json!(s.input_changed);
                    out["max_depth"] = json!(s.depth);
                }
                Err(depth) => {
                    out["error"] = json!("all_models_failed");
                    out["max_depth"] = json!(depth);
                }
            },
            "summarize_all" => {
                let summary = model.ask(&transcript(&all)).unwrap();
                let line = ChatLine::new("user", format!("{}{summary}", rules.prefix));
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
            done.extend([ChatLine::new("user", text), ChatLine::new("assistant", "Ok.")]);
        }
        let snapshot = if i["snapshot"] == "after_append" { done.clone() } else { before.clone() };
        let mut model = Summariser::new(i, constants);
        let rules = model.rules(i, constants);
        assert!(total(&before, rules.count) as f64 > rules.max_tokens, "a worker starts");
        let summarised = summarize(&snapshot, &rules, &mut |t| model.ask(t));
        let (outcome, done) = match ending(&done, &snapshot, summarised.is_ok(), true) {
            Ending::Applied => ("summary_applied", summarised.unwrap().messages),
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
        all.into_iter()
            .map(|(who, text)| json!({"role": format!("{who:?}").to_lowercase(), "content": text}))
            .collect()
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
                "user" => append(&mut file, Role::User, text),
                "assistant" => append(&mut file, Role::Assistant, text),
                _ => append(&mut file, Role::Tool, text),
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
        // Blocks that stand for messages, examples with the system prompt and the reminder with the
        // current turns.
        let blocks = |names: &[&str]| {
            let all = names.iter().flat_map(|name| part(name));
            all.map(|m| block(BlockKind::User, 0, &m.to_string())).collect()
        };
        let chunks = Chunks {
            system: blocks(&["system", "examples"]),
            readonly_files: blocks(&["readonly_files"]),
            repo: blocks(&["repo"]),
            done: blocks(&["done"]),
            chat_files: blocks(&["chat_files"]),
            cur: blocks(&["cur", "reminder"]),
        };
        let all = chunks.all();
        let mut all: Vec<Value> =
            all.iter().map(|b| serde_json::from_str(&b.text).unwrap()).collect();
        for at in chunks.breakpoints() {
            let text = all[at]["content"].take();
            all[at]["content"] =
                json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        }
        let cacheable = chunks.breakpoints().last().map_or(all.len(), |last| last + 1);
        json!({"cacheable_messages": all[..cacheable], "all_messages": all})
    });
}
