//! Replies without a script: they report the request, and call a tool where the user's text asks
//! for it.

use ctxbench_core::tokens::content_hash;
use ctxbench_core::{BlockKind, ModelError, Part, ToolCall};
use ctxbench_provider::{Prompt, Wire};
use ctxbench_util::plural::pluralize;
use serde_json::{Map, Value};

use super::script::Tail;
use super::speaker::{Arrived, ModelAnswer, Speaker};

/// Most characters of a text that are said back.
const MAX_CHARS: usize = 400;

#[derive(Default)]
pub(super) struct Echo {
    replies: u64,
}

impl Speaker for Echo {
    fn answer(&mut self, request: &Arrived, prompt: &Prompt) -> Result<ModelAnswer, ModelError> {
        self.replies += 1;
        if request.wants_compaction() {
            return Ok(ModelAnswer::Summary(prompt.clone()));
        }
        let mut parts = echo(request.wire, prompt, self.replies);
        if request.thinking && !request.wire.rules.always_thinks {
            parts.insert(0, thinking(prompt));
        }
        Ok(ModelAnswer::Parts(parts))
    }
}

/// Returns the reply of the model. A line `call NAME {arguments}` in the user's last text is
/// answered by that call, if the request offers a tool of that name; `number` makes its id.
fn echo(wire: Wire, prompt: &Prompt, number: u64) -> Vec<Part> {
    let tail = Tail::new(prompt);
    if !tail.results.is_empty() {
        let said: Vec<String> = prompt
            .items
            .iter()
            .filter(|i| i.kind == BlockKind::Output)
            .filter_map(|i| {
                let id = i.call_id().filter(|id| tail.results.iter().any(|of| **of == **id))?;
                let how = if i.is_error { "failed" } else { "returned" };
                Some(format!("The call {id} {how}: {}", short(i.text())))
            })
            .collect();
        return vec![Part::Text(said.join("\n").into())];
    }
    let offered = offered_tools(wire, prompt);
    let calls: Vec<Part> = tail
        .words
        .iter()
        .flat_map(|w| w.lines())
        .filter_map(call)
        .filter(|(name, _)| offered.iter().any(|o| o == name))
        .enumerate()
        .map(|(i, (name, arguments))| {
            Part::Call(ToolCall {
                id: format!("call_{number:04}_{i}").into(),
                name: name.into(),
                arguments: arguments.into(),
            })
        })
        .collect();
    let said = match (calls.len(), tail.words.last()) {
        (0, None) => "You said nothing.".to_string(),
        (0, Some(words)) => format!("You said: {}", short(words)),
        (n, _) => format!("Calling {} as asked.", pluralize(n as u64, "tool")),
    };
    std::iter::once(Part::Text(said.into())).chain(calls).collect()
}

/// Returns the names of the tools that a request offers.
pub(crate) fn offered_tools(wire: Wire, prompt: &Prompt) -> Vec<String> {
    let json = prompt.tools.as_ref().map_or("[]", |t| t.json.get());
    let all: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    all.iter().filter_map(|t| (wire.rules.tool_name)(t)).map(str::to_string).collect()
}

/// Tool and arguments of a line that asks for a call; arguments that are left out are an empty
/// object.
fn call(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim().strip_prefix("call ")?.trim();
    let (name, arguments) =
        rest.split_once(char::is_whitespace).map_or((rest, "{}"), |(n, a)| (n, a.trim()));
    let object: Result<Map<String, Value>, _> = serde_json::from_str(arguments);
    object.is_ok().then_some((name, arguments))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_string(),
        Some((end, _)) => format!("{}… ({} characters in all)", &text[..end], text.chars().count()),
    }
}

/// Returns the thinking before a reply. The signature is not a secret: it is a hash, and it is never
/// checked.
fn thinking(prompt: &Prompt) -> Part {
    let pieces = pluralize(prompt.items.len() as u64, "piece");
    let text = format!("The request contains {pieces}; the last one decides what the reply says.");
    let signature = format!("ctxbench{:016x}", content_hash(text.as_bytes()));
    Part::Reasoning { text: text.into(), encrypted: Some(signature.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_asks_for_a_call() {
        assert_eq!(call("call read {\"path\": \"a b\"}"), Some(("read", "{\"path\": \"a b\"}")));
        assert_eq!(call("  call list"), Some(("list", "{}")));
        for no in
            ["call me later", "please call read {}", "call read [1]", "recall read {}", "call"]
        {
            assert_eq!(call(no), None, "{no}");
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(short("ä"), "ä");
        assert_eq!(
            short(&"ä".repeat(401)),
            format!("{}… (401 characters in all)", "ä".repeat(400))
        );
    }
}
