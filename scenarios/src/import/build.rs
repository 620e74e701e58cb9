//! Puts a recording's messages together: unique ids, times since the first message, context that joins a message.

use std::collections::{HashMap, HashSet};

use ctxbench_core::session::{AssistantEntry, Entry, Header, Millis, RecordedUsage, Session, SessionPart, Source, ToolEntry, UserEntry};
use ctxbench_core::tokens::o200k;

use super::time;
use crate::bounds::{self, Number};
use crate::check::{Located, assemble};
use crate::error::{Fault, ImportError, Loaded};

/// A session in the making.
#[derive(Default)]
pub(super) struct Builder {
    items: Vec<Located>,
    warnings: Vec<String>,
    ids: HashSet<String>,
    /// New names of call ids that a recording uses twice.
    calls: HashMap<String, String>,
    /// Context that waits for a message, by window.
    held: HashMap<Option<String>, Vec<SessionPart>>,
    /// Whose window the messages belong to that come now; `None` = the main conversation.
    agent: Option<String>,
    start: Option<i64>,
}

/// A model reply as an importer collects it.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) line: usize,
    pub(super) id: Option<String>,
    pub(super) parts: Vec<SessionPart>,
    pub(super) usage: Option<RecordedUsage>,
    /// The recording does not tell the output tokens: count the parts instead.
    pub(super) estimate_output: bool,
    pub(super) model: Option<String>,
    pub(super) stamp: Option<String>,
}

impl Builder {
    pub(super) fn new(warnings: Vec<String>) -> Builder {
        Builder { warnings, ..Builder::default() }
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Messages from now on are those of this subagent, or of the main conversation.
    pub(super) fn enter(&mut self, agent: Option<&str>) {
        self.agent = agent.map(str::to_string);
    }

    /// Whether the messages that come now are a subagent's.
    pub(super) fn in_agent(&self) -> bool {
        self.agent.is_some()
    }

    fn held(&mut self) -> Vec<SessionPart> {
        self.held.remove(&self.agent).unwrap_or_default()
    }

    /// Whether a user message or a reply was added.
    pub(super) fn begun(&self) -> bool {
        self.items.iter().any(|i| matches!(i.entry, Entry::User(_) | Entry::Assistant(_)))
    }

    /// An entry that is no message.
    pub(super) fn entry(&mut self, line: usize, entry: Entry) {
        self.items.push(Located { line, entry });
    }

    /// Text that the program put into the context by itself. It joins the next user message; where a reply comes first, the
    /// tool result before it; where there is none, it becomes a user message.
    pub(super) fn hold(&mut self, part: SessionPart) {
        self.held.entry(self.agent.clone()).or_default().push(part);
    }

    pub(super) fn user(&mut self, line: usize, id: Option<&str>, parts: Vec<SessionPart>, stamp: Option<&str>) {
        let mut all = self.held();
        all.extend(parts);
        let (text, parts) = single_text(all);
        let entry = UserEntry { id: self.unique(id), text, parts, at: self.at(stamp), agent: self.agent.clone(), ..UserEntry::default() };
        self.entry(line, Entry::User(entry));
    }

    pub(super) fn reply(&mut self, reply: Reply) {
        let Reply { line, id, mut parts, mut usage, estimate_output, model, stamp } = reply;
        if self.held.contains_key(&self.agent) {
            let agent = &self.agent;
            match self.items.iter_mut().rev().map(|i| &mut i.entry).find(|e| window(e) == agent.as_deref()) {
                Some(Entry::Tool(t)) => {
                    let mut all = t.content();
                    all.append(&mut self.held.remove(agent).unwrap_or_default());
                    (t.output, t.parts) = (None, Some(all));
                }
                _ => self.user(line, None, Vec::new(), stamp.as_deref()),
            }
        }
        for part in &mut parts {
            if let SessionPart::Call(call) = part {
                let given = std::mem::take(&mut call.id);
                call.id = self.unique(Some(&given));
                self.calls.insert(given, call.id.clone());
            }
        }
        let mut extra = serde_json::Map::new();
        if let Some(usage) = usage.as_mut().filter(|_| estimate_output) {
            usage.output = parts.iter().map(part_tokens).sum();
            extra.insert("output_estimated".to_string(), true.into());
        }
        let (text, parts) = single_text(parts);
        let at = self.at(stamp.as_deref());
        let id = self.unique(id.as_deref());
        self.entry(
            line,
            Entry::Assistant(AssistantEntry {
                id,
                text,
                parts,
                usage,
                model,
                at,
                agent: self.agent.clone(),
                extra,
                ..AssistantEntry::default()
            }),
        );
    }

    pub(super) fn result(&mut self, line: usize, call_id: &str, parts: Vec<SessionPart>, is_error: Option<bool>, stamp: Option<&str>) {
        let call_id = self.calls.get(call_id).map_or(call_id, String::as_str).to_string();
        let (output, parts) = single_text(parts);
        let output = if parts.is_none() { Some(output.unwrap_or_default()) } else { output };
        let at = self.at(stamp);
        self.entry(
            line,
            Entry::Tool(ToolEntry { call_id, output, parts, is_error, at, agent: self.agent.clone(), ..ToolEntry::default() }),
        );
    }

    /// Takes back everything from the `turns`-th last user message on.
    pub(super) fn roll_back(&mut self, turns: usize) {
        let users: Vec<usize> = (0..self.items.len()).filter(|i| matches!(self.items[*i].entry, Entry::User(_))).collect();
        if let Some(from) = users.len().checked_sub(turns.max(1)).map(|i| users[i]) {
            self.items.truncate(from);
        }
        self.held.clear();
    }

    /// Milliseconds since the first stamp that was asked for.
    pub(super) fn at(&mut self, stamp: Option<&str>) -> Option<Millis> {
        let now = time::millis(stamp?)?;
        let start = *self.start.get_or_insert(now);
        Some(u64::try_from(now.saturating_sub(start)).unwrap_or_default())
    }

    /// The session. Without a message the recording is an error.
    pub(super) fn finish(mut self, format: &str, file: &str, mut header: Header) -> Result<Loaded, ImportError> {
        if !self.begun() {
            let fault = Fault::new(1, "no messages", format!("a {format} recording with at least one message"), "check the format");
            return Err(fault.at(file));
        }
        header.version = crate::jsonl::VERSION;
        header.source = Some(Source { format: format.to_string(), file: Some(file.to_string()) });
        header.id = stem(file).to_string();
        header.title = self.items.iter().find_map(title).unwrap_or_default();
        if header.model.is_none() {
            header.model = self.items.iter().find_map(|i| match &i.entry {
                Entry::Assistant(a) if a.agent.is_none() => a.model.clone(),
                _ => None,
            });
        }
        bounds::clamp_all(&mut header, &mut self.items, file, &mut self.warnings);
        let mut loaded = assemble(header, self.items, file, false).map_err(|f| f.at(file))?;
        let mut prefix = prefix_tokens(&loaded.session);
        let numbers = prefix.iter_mut().map(|n| Number::new("prefix_tokens", n, bounds::FILLER_TOKENS)).collect();
        bounds::clamp(numbers, file, 1, &mut self.warnings);
        loaded.session.header.prefix_tokens = prefix;
        self.warnings.append(&mut loaded.warnings);
        Ok(Loaded { session: loaded.session, warnings: self.warnings })
    }

    /// The id if it is new, else one made from it.
    fn unique(&mut self, wanted: Option<&str>) -> String {
        let base = wanted.filter(|w| !w.is_empty()).map_or_else(|| format!("m{}", self.items.len() + 1), str::to_string);
        if self.ids.insert(base.clone()) {
            return base;
        }
        let id = (2..).map(|n| format!("{base}-{n}")).find(|id| !self.ids.contains(id)).expect("there are more numbers than ids");
        self.ids.insert(id.clone());
        id
    }
}

/// Tokens of the request of the first reply that carries counters, less the o200k count of what stands in the session before
/// that reply: system prompt and tools, as far as the recording lacks their text.
fn prefix_tokens(session: &Session) -> Option<u64> {
    let first = session.entries.iter().position(|e| matches!(e, Entry::Assistant(a) if a.usage.is_some() && a.agent.is_none()))?;
    let Entry::Assistant(AssistantEntry { usage: Some(usage), .. }) = &session.entries[first] else { return None };
    let known: u64 = session.entries[..first].iter().filter(|e| window(e).is_none()).map(entry_tokens).sum();
    Some((usage.input + usage.cache_read + usage.cache_write).saturating_sub(known))
}

/// The subagent whose window an entry belongs to.
fn window(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::User(u) => u.agent.as_deref(),
        Entry::Assistant(a) => a.agent.as_deref(),
        Entry::Tool(t) => t.agent.as_deref(),
        _ => None,
    }
}

fn entry_tokens(entry: &Entry) -> u64 {
    let parts = match entry {
        Entry::System { text, .. } | Entry::RepoMap { text, .. } | Entry::Memory { text, .. } | Entry::File { text, .. } => {
            return o200k(text);
        }
        Entry::User(m) => m.content(),
        Entry::Assistant(m) => m.content(),
        Entry::Tool(m) => m.content(),
        _ => Vec::new(),
    };
    parts.iter().map(part_tokens).sum()
}

fn part_tokens(part: &SessionPart) -> u64 {
    match part {
        SessionPart::Text { text } | SessionPart::Reasoning { text, .. } => o200k(text),
        SessionPart::Call(c) => o200k(&c.name) + o200k(&c.arguments),
        SessionPart::Image { .. } => 0,
    }
}

/// One plain text stands alone, everything else as parts.
fn single_text(mut parts: Vec<SessionPart>) -> (Option<String>, Option<Vec<SessionPart>>) {
    match parts.as_mut_slice() {
        [] => (Some(String::new()), None),
        [SessionPart::Text { text }] => (Some(std::mem::take(text)), None),
        _ => (None, Some(parts)),
    }
}

/// The first line of what the user asked last in the message, cut after 80 characters.
fn title(item: &Located) -> Option<String> {
    let Entry::User(user) = &item.entry else { return None };
    if user.agent.is_some() {
        return None;
    }
    let text = user.content().into_iter().rev().find_map(|p| match p {
        SessionPart::Text { text } if !text.trim().is_empty() => Some(text),
        _ => None,
    })?;
    let line = text.trim().lines().next().unwrap_or_default();
    let short: String = line.chars().take(80).collect();
    Some(if short.len() < line.len() { format!("{}…", short.trim_end()) } else { short })
}

fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}
