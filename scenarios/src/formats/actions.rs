//! Agents that write actions as text: the model writes an action in its reply and reads the result
//! in a user message. Each such pair becomes a call and its result.

use serde_json::{Map, Value, json};

use super::lines::{list_of, str_of};

const TOOL: &str = "bash";

/// Converts actions to calls, message by message.
#[derive(Default)]
pub(super) struct Actions {
    count: usize,
    /// Id of the call without a result.
    open: Option<String>,
}

impl Actions {
    /// Makes a user message the result of the action before it, and gives a reply the call that its
    /// text contains. `read` returns the other text and the action of a reply without calls.
    pub(super) fn convert(
        &mut self,
        message: &mut Map<String, Value>,
        read: impl Fn(&Map<String, Value>) -> Option<(String, String)>,
    ) {
        match str_of(message, "role") {
            Some("user") => {
                if let Some(id) = self.open.take() {
                    message.insert("role".into(), "tool".into());
                    message.insert("tool_call_id".into(), id.into());
                }
            }
            Some("assistant") => {
                self.open = None;
                let read = list_of(message, "tool_calls").is_empty().then(|| read(message));
                if let Some((said, action)) = read.flatten() {
                    self.act(message, &said, &action);
                }
            }
            _ => {}
        }
    }

    fn act(&mut self, message: &mut Map<String, Value>, said: &str, action: &str) {
        self.count += 1;
        let id = format!("action-{}", self.count);
        let arguments = json!({ "command": action }).to_string();
        let function = json!({ "name": TOOL, "arguments": arguments });
        let call = json!({ "id": id, "type": "function", "function": function });
        message.insert("content".into(), said.into());
        message.insert("tool_calls".into(), json!([call]));
        self.open = Some(id);
    }
}

/// Returns the only fenced block of a text that is marked with one of `languages`, and the text
/// around it. Returns `None` for several blocks, since agents refuse such replies.
pub(super) fn fenced(text: &str, languages: &[&str]) -> Option<(String, String)> {
    let mut found = None;
    let mut from = 0;
    while let Some(at) = text[from..].find("```").map(|i| from + i) {
        let rest = &text[at + 3..];
        let (language, _) = rest.split_once('\n')?;
        let body = at + 3 + language.len() + 1;
        let end = text[body..].find("```").map(|i| body + i)?;
        if languages.contains(&language.trim_end()) {
            if found.is_some() {
                return None;
            }
            let around = [text[..at].trim_end(), text[end + 3..].trim()];
            let around: Vec<&str> = around.into_iter().filter(|t| !t.is_empty()).collect();
            found = Some((around.join("\n\n"), text[body..end].trim_end().to_string()));
        }
        from = end + 3;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_block_of_a_language_is_the_action() {
        let of = |t: &str| fenced(t, &["bash", "cmd"]);
        let found = of("Look.\n\n```bash\nls -l\n```\n").unwrap();
        assert_eq!(found, ("Look.".to_string(), "ls -l".to_string()));
        let found = of("```py\nx\n```\nNow\n```cmd\na\nb\n```\nso.").unwrap();
        assert_eq!(found, ("```py\nx\n```\nNow\n\nso.".to_string(), "a\nb".to_string()));
        for none in
            ["", "no block", "```bash\nx", "```bash", "```bash\na\n```\n```bash\nb\n```", "```"]
        {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
