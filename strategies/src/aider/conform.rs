//! Runs Aider's rules on recorded inputs.

use super::summary::{
    ChatLine, Ending, LineContent, OBSERVED, SummaryFailure, SummaryRules, TokenCount, head_limit,
    quoted, summarize, summarize_all, summarize_end, too_big,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::conform_texts::{cache_headers, roundtrip, split_markdown};
use crate::conform::{Conformance, Context, Function, Label, MemberError, nullable, read};

/// Conformance data of Aider: recordings of its routines, but not of whole sessions.
pub(crate) const CONFORMANCE: Conformance = Conformance {
    functions: &[
        Function { name: "summarize", versions: &[], call: summarise },
        Function { name: "split_markdown", versions: &[], call: split_markdown },
        Function { name: "markdown_roundtrip", versions: &[], call: roundtrip },
        Function { name: "cache_headers", versions: &[], call: cache_headers },
        Function { name: "turn_thread", versions: &[], call: turn_thread },
    ],
    labels: &[Label { member: "outcome", recorded: &[APPLIED, DISCARDED, EMPTIED] }],
    replay: None,
};

const APPLIED: &str = "summary_applied";
const DISCARDED: &str = "summary_discarded_full_history_kept";
const EMPTIED: &str = "history_emptied";
/// Our own name: no recording has a history that fits.
const NOT_STARTED: &str = "no_summary_started";

/// Formats a value as Python's `json.dumps` does.
fn python_json(v: &Value) -> String {
    match v {
        Value::String(s) => quoted(s),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(python_json).collect::<Vec<_>>().join(", "))
        }
        Value::Object(o) => {
            let members: Vec<String> =
                o.iter().map(|(k, v)| format!("{}: {}", quoted(k), python_json(v))).collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageInput {
    role: String,
    content: Value,
}

fn messages(list: Vec<MessageInput>) -> Result<Vec<ChatLine>, MemberError> {
    let content = |v: Value| match v {
        Value::String(t) => Ok(LineContent::Text(t.into())),
        Value::Null => Ok(LineContent::Null),
        Value::Array(_) => Ok(LineContent::Parts(python_json(&v))),
        other => {
            Err(MemberError::Input(format!("a content is a text, a list or null, not {other}")))
        }
    };
    list.into_iter().map(|m| Ok(ChatLine { role: m.role, content: content(m.content)? })).collect()
}

fn written(list: &[ChatLine]) -> Result<Value, MemberError> {
    list.iter()
        .map(|m| {
            let content = match &m.content {
                LineContent::Text(t) => json!(**t),
                LineContent::Null => Value::Null,
                LineContent::Parts(p) => serde_json::from_str(p)?,
            };
            Ok(json!({"role": m.role, "content": content}))
        })
        .collect()
}

/// Token counting rule of a case (`token_rule`): one token per four code points, either of the
/// content or of the JSON text of the message.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Counter {
    Content,
    Json,
}

impl TokenCount for Counter {
    fn message_tokens(&self, m: &ChatLine) -> u64 {
        let chars = match (self, &m.content) {
            (Counter::Json, _) => m.json().chars().count(),
            (Counter::Content, LineContent::Text(t)) => t.chars().count(),
            (Counter::Content, LineContent::Parts(t)) => t.chars().count(),
            (Counter::Content, LineContent::Null) => 0,
        };
        (chars as u64).div_ceil(4)
    }

    fn list(&self, m: &[ChatLine]) -> u64 {
        m.iter().map(|m| self.message_tokens(m)).sum()
    }
}

/// A scripted summariser (`model_rule`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Model {
    name: String,
    behaviour: Behaviour,
    summary: String,
    pad: usize,
    max_input_tokens: Option<u64>,
}

impl Default for Model {
    fn default() -> Self {
        let summary = "SUMMARY {n} ({chars} chars)".to_string();
        Model {
            name: "fake".into(),
            behaviour: Behaviour::Ok,
            summary,
            pad: 0,
            max_input_tokens: None,
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Behaviour {
    Ok,
    None,
    Raise,
}

fn default_models() -> Vec<Model> {
    vec![Model::default()]
}

/// Pads a text with `x` to a number of characters.
fn padded(mut text: String, chars: usize) -> String {
    let missing = chars.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('x', missing));
    text
}

struct Summariser<'a> {
    models: &'a [Model],
    system: &'a str,
    calls: Vec<Value>,
}

impl Summariser<'_> {
    /// Asks the models one after the other.
    fn ask(&mut self, text: &str) -> Option<String> {
        self.models.iter().find_map(|m| {
            let fill = |t: &str| {
                t.replace("{n}", &(self.calls.len() + 1).to_string())
                    .replace("{chars}", &text.chars().count().to_string())
            };
            let mut call = json!({"model": m.name, "system": self.system, "user": text});
            let answer = match m.behaviour {
                Behaviour::Ok => Some(padded(fill(&m.summary), m.pad)),
                Behaviour::None | Behaviour::Raise => None,
            };
            match m.behaviour {
                Behaviour::Raise => call["raised"] = json!(true),
                _ => call["returned"] = json!(answer),
            }
            self.calls.push(call);
            answer
        })
    }
}

fn constant<'a>(c: &'a Context, name: &str) -> Result<&'a str, MemberError> {
    let text = c.facts.get("constants").and_then(|o| o.get(name)).and_then(Value::as_str);
    text.ok_or_else(|| MemberError::Input(format!("the file has no constant `{name}`")))
}

fn rules(c: &Context, max_tokens: f64, models: &[Model]) -> Result<SummaryRules, MemberError> {
    let first = models.first().ok_or_else(|| MemberError::Input("no models".into()))?;
    let prefix = constant(c, "summary_prefix")?.to_string();
    Ok(SummaryRules {
        max_tokens,
        head_limit: head_limit(first.max_input_tokens, 1.0),
        prefix,
        split_rules: OBSERVED,
    })
}

fn error(f: SummaryFailure) -> &'static str {
    match f {
        SummaryFailure::AllModelsFailed => "all_models_failed",
        SummaryFailure::ContentNotText => "content_not_text",
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FunctionName {
    Summarize,
    SummarizeAll,
    TooBig,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Summarise {
    entry: FunctionName,
    count: Counter,
    messages: Vec<MessageInput>,
    max_tokens: f64,
    #[serde(default = "default_models")]
    models: Vec<Model>,
}

fn summarise(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Summarise = read(input)?;
    let list = messages(i.messages)?;
    let rules = rules(c, i.max_tokens, &i.models)?;
    let mut model = Summariser {
        models: &i.models,
        system: constant(c, "summarize_prompt")?,
        calls: Vec::new(),
    };
    let big = too_big(&list, i.max_tokens, &i.count);
    let mut out =
        json!({"total_tokens": i.count.list(&list), "too_big": big, "input_mutated": false});
    match i.entry {
        FunctionName::Summarize => {
            match summarize(&list, &rules, &i.count, &mut |t| model.ask(t)) {
                Ok(s) => {
                    out["result"] = written(&s.messages)?;
                    out["input_mutated"] = json!(s.input_changed);
                    out["max_depth"] = json!(s.depth);
                }
                Err(e) => {
                    out["error"] = json!(error(e.cause));
                    out["max_depth"] = json!(e.depth);
                }
            }
        }
        FunctionName::SummarizeAll => {
            match summarize_all(&list, &rules.prefix, &mut |t| model.ask(t)) {
                Ok(all) => out["result"] = written(&all)?,
                Err(e) => out["error"] = json!(error(e)),
            }
        }
        FunctionName::TooBig => out["result"] = json!(big),
    }
    out["calls"] = Value::Array(model.calls);
    Ok(out)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnThread {
    done: Vec<MessageInput>,
    cur: Vec<MessageInput>,
    #[serde(deserialize_with = "nullable")]
    message: Option<String>,
    snapshot: Snapshot,
    count: Counter,
    max_tokens: f64,
    #[serde(default = "default_models")]
    models: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Snapshot {
    BeforeAppend,
    AfterAppend,
}

fn turn_thread(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: TurnThread = read(input)?;
    let rules = rules(c, i.max_tokens, &i.models)?;
    let before = messages(i.done.into_iter().chain(i.cur).collect())?;
    let mut done = before.clone();
    if let Some(text) = i.message {
        done.extend([ChatLine::text("user", text), ChatLine::text("assistant", "Ok.")]);
    }
    let snapshot = match i.snapshot {
        Snapshot::BeforeAppend => before.clone(),
        Snapshot::AfterAppend => done.clone(),
    };
    let mut model = Summariser {
        models: &i.models,
        system: constant(c, "summarize_prompt")?,
        calls: Vec::new(),
    };
    // The worker starts only if the finished history is too big at the end of the turn.
    let ending = too_big(&before, i.max_tokens, &i.count).then(|| {
        let summarised =
            summarize(&snapshot, &rules, &i.count, &mut |t| model.ask(t)).ok().map(|s| s.messages);
        summarize_end(&done, &snapshot, summarised, true)
    });
    let (outcome, done) = match ending {
        Some(Ending::Applied(new)) => (APPLIED, new),
        Some(Ending::Discarded) => (DISCARDED, done),
        Some(Ending::Emptied) => (EMPTIED, Vec::new()),
        None => (NOT_STARTED, done),
    };
    Ok(json!({"outcome": outcome, "summarizer_calls": model.calls.len(), "done": written(&done)?}))
}
