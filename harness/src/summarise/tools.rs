//! Statements about the tool calls of a conversation: files and their changes, commands, and the
//! task list.

use std::collections::HashMap;

use serde_json::Value;

use super::sentences::clip;
use super::topic::Topic;

/// Collects calls, with one line per file and command.
#[derive(Default)]
pub(super) struct ToolDigest<'a> {
    files: Vec<TouchedFile<'a>>,
    by_path: HashMap<String, usize>,
    commands: Vec<(String, u32, u64, f32)>,
    by_command: HashMap<String, usize>,
    todos: Vec<(String, bool, u64)>,
}

struct TouchedFile<'a> {
    path: String,
    used: Vec<(&'a str, u32)>,
    edits: u32,
    note: Option<String>,
    /// Line in an earlier summary.
    earlier: Option<&'a str>,
    order: u64,
    fresh: f32,
}

impl<'a> ToolDigest<'a> {
    /// Adds a tool call.
    pub fn call(&mut self, tool: &'a str, arguments: &'a str, order: u64, fresh: f32) {
        let name: String = tool
            .chars()
            .filter(char::is_ascii_alphabetic)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        let is = |parts: &[&str]| parts.iter().any(|p| name.contains(p));
        if is(&["todo", "updateplan"]) {
            self.tasks(arguments, order);
            return;
        }
        let changes =
            is(&["edit", "write", "patch", "replace", "create", "delete", "rename", "insert"]);
        if changes || is(&["read", "view", "cat", "open"]) {
            let note = if changes {
                string(arguments, &["description", "explanation", "summary"])
            } else {
                None
            };
            for path in paths(arguments) {
                self.touch(path, tool, changes, note.as_deref(), order, fresh);
            }
            return;
        }
        if let Some(command) = string(arguments, &["command", "cmd", "script"]) {
            for path in patched(&command) {
                self.touch(path, "apply_patch", true, None, order, fresh);
            }
            self.command(&command, order, fresh);
        }
    }

    /// Adds the line about a file from an earlier summary.
    pub fn earlier(&mut self, path: &str, line: &'a str, order: u64) {
        let f = self.file(path.to_string(), order);
        self.files[f].earlier = Some(line);
    }

    /// Returns `(text, topic, weight, position)` of each line.
    pub fn finish(self) -> Vec<(String, Topic, f32, u64)> {
        let mut out = Vec::new();
        for f in self.files {
            let weight = match (f.edits, f.earlier) {
                (0, None) => 0.6,
                (0, Some(_)) => 1.9,
                (n, _) => 2.0 + 0.15 * n.min(4) as f32,
            };
            let text = match f.earlier {
                Some(line) if f.edits == 0 => line.to_string(),
                _ => f.line(),
            };
            out.push((text, Topic::File, weight + 0.7 * f.fresh, f.order));
        }
        for (command, count, order, fresh) in self.commands {
            let times = if count > 1 { format!(" ×{count}") } else { String::new() };
            out.push((format!("`{command}`{times}"), Topic::Progress, 0.7 + 0.6 * fresh, order));
        }
        for (text, done, order) in self.todos {
            let (topic, weight) = if done { (Topic::Progress, 1.2) } else { (Topic::Next, 2.8) };
            out.push((text, topic, weight, order));
        }
        out
    }

    fn file(&mut self, path: String, order: u64) -> usize {
        *self.by_path.entry(path).or_insert_with_key(|path| {
            let path = path.clone();
            self.files.push(TouchedFile {
                path,
                used: Vec::new(),
                edits: 0,
                note: None,
                earlier: None,
                order,
                fresh: 0.0,
            });
            self.files.len() - 1
        })
    }

    fn touch(
        &mut self,
        path: String,
        tool: &'a str,
        changes: bool,
        note: Option<&str>,
        order: u64,
        fresh: f32,
    ) {
        let at = self.file(path, order);
        let f = &mut self.files[at];
        f.fresh = fresh;
        f.edits += u32::from(changes);
        if let Some(n) = note {
            f.note = Some(clip(n, 100).to_string());
        }
        match f.used.iter_mut().find(|(t, _)| *t == tool) {
            Some((_, n)) => *n += 1,
            None => f.used.push((tool, 1)),
        }
    }

    fn command(&mut self, command: &str, order: u64, fresh: f32) {
        let line = clip(command.trim().lines().next().unwrap_or(""), 160).to_string();
        if line.is_empty() {
            return;
        }
        match self.by_command.get(&line) {
            Some(&i) => {
                let c = &mut self.commands[i];
                (c.1, c.3) = (c.1 + 1, fresh);
            }
            None => {
                self.by_command.insert(line.clone(), self.commands.len());
                self.commands.push((line, 1, order, fresh));
            }
        }
    }

    /// Replaces the task list by a newer one.
    fn tasks(&mut self, arguments: &str, order: u64) {
        let mut found = Vec::new();
        match field(arguments, &["items", "todos", "plan", "tasks"]) {
            Some(Value::String(lines)) => {
                found.extend(lines.lines().map(|l| (l.to_string(), is_done(l))))
            }
            Some(Value::Array(items)) => {
                for i in items {
                    let text = ["content", "step", "text", "title", "task"]
                        .iter()
                        .find_map(|k| i.get(k).and_then(Value::as_str))
                        .or(i.as_str());
                    let status = i.get("status").and_then(Value::as_str).unwrap_or("");
                    found.extend(text.map(|t| (t.to_string(), is_done(status))));
                }
            }
            _ => return,
        }
        self.todos =
            found.into_iter().zip(0..).map(|((t, done), k)| (t, done, order + k)).collect();
    }
}

impl TouchedFile<'_> {
    fn line(&self) -> String {
        let used: Vec<String> = self
            .used
            .iter()
            .map(|(tool, n)| if *n > 1 { format!("{tool} ×{n}") } else { (*tool).to_string() })
            .collect();
        let note = self.note.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
        format!("{}: {}{note}", self.path, used.join(", "))
    }
}

fn is_done(status: &str) -> bool {
    let low = status.to_lowercase();
    ["completed", "done", "[x]", "✓", "✔", "cancelled"].iter().any(|d| low.contains(d))
}

/// Returns the files that a call names in a field or in the lines of a patch.
fn paths(arguments: &str) -> Vec<String> {
    match string(
        arguments,
        &["path", "file_path", "filePath", "filename", "file", "target_file", "notebook_path"],
    ) {
        Some(p) if p.len() <= 200 => vec![p],
        _ => patched(arguments),
    }
}

fn patched(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for mark in ["*** Update File: ", "*** Add File: ", "*** Delete File: "] {
        for (at, _) in text.match_indices(mark).take(50) {
            // The patch may still be inside a JSON string, in which a line break is a backslash and
            // an n.
            let path = text[at + mark.len()..].split(['\n', '\\', '"']).next().unwrap_or("").trim();
            if !path.is_empty() && path.len() <= 200 && !out.iter().any(|p| p == path) {
                out.push(path.to_string());
            }
        }
    }
    out
}

/// Returns the first of these fields that is a string, or the joined strings of a list.
fn string(arguments: &str, keys: &[&str]) -> Option<String> {
    match field(arguments, keys)? {
        Value::String(s) => Some(s),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// Parses a single field. The whole may be long or truncated.
fn field(arguments: &str, keys: &[&str]) -> Option<Value> {
    keys.iter().find_map(|key| {
        let quoted = format!("\"{key}\"");
        let rest = &arguments[arguments.find(&quoted)? + quoted.len()..];
        let value = rest.trim_start().strip_prefix(':')?;
        serde_json::Deserializer::from_str(value).into_iter::<Value>().next()?.ok()
    })
}
