//! Conversion of a recording to a session: joins the parts of replies, makes ids unique, computes
//! times since the first message, and adds context to messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::Millis;
use ctxbench_core::content::{Part, joined_text};
use ctxbench_session::{
    AssistantEntry, Entry, Header, RecordedCall, RecordedCompaction, RecordedUsage, Source,
    ToolEntry, UserEntry, calibration,
};

use super::counters::{Counters, wrong_counters};
use super::lines::first_line;
use super::recording::{
    ContextPlace, Input, MessagePart, Recording, RecordingCompaction, RecordingReply,
    RecordingStep, StepKind, View,
};
use super::source::Source as Read;
use super::{plausible, time};
use crate::bounds;
use crate::check::{Located, assemble};
use crate::error::{InputError, Loaded};

pub(super) fn put_together(
    recording: Recording,
    format: &str,
    file: &str,
) -> Result<Loaded, InputError> {
    let Recording { steps, id, title, context_window, of_subagent, version, .. } = recording;
    let Recording { mut warnings, left_out, prefix_tokens, drops_content, continues, .. } =
        recording;
    warnings.extend(left_out);
    let mut unknown = BTreeMap::new();
    let given_up = given_up(&steps);
    let steps = steps.into_iter().filter(|s| s.view != View::Calls);
    let steps = joined(steps, &mut unknown);
    for (kind, n) in &unknown {
        warnings.push(format!("{file}: {n} × {kind}"));
    }
    warnings.extend(wrong_counters(steps.iter().chain(&given_up), file));
    let mut builder = SessionBuilder {
        warnings,
        start: start(&steps),
        prefix_tokens,
        drops_content,
        ..Default::default()
    };
    for step in steps {
        builder.agent = step.agent.clone().filter(|_| !of_subagent);
        builder.step(step);
    }
    for RecordingStep { line, stamp, agent, what, .. } in given_up {
        (builder.line, builder.stamp) = (line, stamp);
        builder.agent = agent.filter(|_| !of_subagent);
        if let StepKind::Reply(reply) = what {
            builder.call(reply);
        }
    }
    let (id, title) = (id.unwrap_or_default(), title.unwrap_or_default());
    let source =
        Source { format: format.to_string(), file: Some(file.to_string()), version, continues };
    let header = Header { id, title, context_window, source: Some(source), ..Header::default() };
    builder.finish(format, file, header)
}

/// Returns the start of the main conversation, ms since 1970. A subagent may precede it in the
/// file, with later times.
fn start(steps: &[RecordingStep]) -> Option<i64> {
    let is_timed = |s: &&RecordingStep| match &s.what {
        StepKind::Input(input) => !input.pieces.iter().all(|p| matches!(p, MessagePart::Added(..))),
        StepKind::Reply(_) | StepKind::Compaction(_) => true,
        _ => false,
    };
    let mut main = steps.iter().filter(|s| s.agent.is_none()).filter(is_timed);
    main.find_map(|s| time::millis(s.stamp.as_deref()?))
}

/// Returns the calls on branches that the session did not end with, once each.
fn given_up(steps: &[RecordingStep]) -> Vec<RecordingStep> {
    let (mut replies, mut kept, mut summaries) = (HashSet::new(), HashSet::new(), HashSet::new());
    for step in steps {
        let is_kept = step.view != View::Calls;
        match &step.what {
            StepKind::Reply(reply) => {
                replies.extend(&reply.response);
                kept.extend(reply.response.iter().filter(|_| is_kept).map(|id| (&step.agent, id)));
            }
            // The request for a summary belongs to its compaction.
            StepKind::Compaction(c) if is_kept => {
                summaries.extend(c.reply.iter().filter_map(|r| r.response.as_ref()));
            }
            _ => {}
        }
    }
    let call = |step: &RecordingStep| {
        let reply = step.what.any_reply()?;
        let id = reply.response.as_ref()?;
        let is_reply = matches!(step.what, StepKind::Reply(_));
        let is_known = kept.contains(&(&step.agent, id))
            || summaries.contains(id)
            || !is_reply && replies.contains(id);
        let what = StepKind::Reply(reply.clone());
        (!is_known).then(|| RecordingStep { what, ..step.clone() })
    };
    let calls = steps.iter().filter(|s| s.view == View::Calls).filter_map(call);
    joined(calls, &mut BTreeMap::new())
}

/// Joins the parts of a reply or compaction into one step at the first part. Counts unknown parts by
/// their description.
fn joined(
    steps: impl Iterator<Item = RecordingStep>,
    unknown: &mut BTreeMap<String, usize>,
) -> Vec<RecordingStep> {
    let mut out: Vec<RecordingStep> = Vec::new();
    // Position of each reply by conversation and response, and of the reply that is still open.
    let mut replies: HashMap<(Option<String>, String), usize> = HashMap::new();
    let mut open: Option<usize> = None;
    for mut step in steps {
        match &mut step.what {
            StepKind::Reply(more) => {
                note_unknown(&more.pieces, unknown);
                let key = more.response.clone().map(|r| (step.agent.clone(), r));
                let place = match &key {
                    Some(key) => replies.get(key).copied(),
                    None => open,
                };
                if let Some(StepKind::Reply(reply)) = place.map(|i| &mut out[i].what) {
                    reply.join(std::mem::replace(more, RecordingReply::new(None, Vec::new())));
                    continue;
                }
                match key {
                    None if more.pieces.is_empty() => continue,
                    Some(key) => drop(replies.insert(key, out.len())),
                    None => open = Some(out.len()),
                }
            }
            StepKind::Summary(pieces) => {
                note_unknown(pieces, unknown);
                let words = std::mem::take(pieces).into_iter();
                let words: Vec<Part> = words.filter_map(MessagePart::into_part).collect();
                let text = Some(joined_text(&words, "\n"));
                let last = out.iter_mut().rev().find(|s| {
                    s.agent == step.agent
                        && !matches!(&s.what, StepKind::Input(i) if i.only_added())
                });
                if let Some(StepKind::Compaction(c)) = last.map(|s| &mut s.what)
                    && c.summary.is_none()
                {
                    c.summary = text;
                    continue;
                }
                let found = RecordingCompaction { summary: text, ..Default::default() };
                step.what = StepKind::Compaction(found);
                open = None;
            }
            StepKind::Input(input) => {
                note_unknown(&input.pieces, unknown);
                open = None;
            }
            StepKind::Compaction(_) | StepKind::Cleared => open = None,
            StepKind::Unknown(kind) => {
                *unknown.entry(format!("{kind}{UNKNOWN}")).or_default() += 1;
                continue;
            }
            StepKind::System(_) | StepKind::Tools(_) => {}
            StepKind::Link | StepKind::Note { .. } => continue,
        }
        out.push(step);
    }
    out
}

/// Endings of notes about omitted parts.
const UNKNOWN: &str = ", which this importer does not know; left out";
const UNANSWERED: &str = ", without their results in the recording; kept as a line of text";

fn note_unknown(pieces: &[MessagePart], unknown: &mut BTreeMap<String, usize>) {
    for piece in pieces {
        match piece {
            MessagePart::Unknown(kind) => {
                *unknown.entry(format!("content block {kind:?}{UNKNOWN}")).or_default() += 1;
            }
            MessagePart::Unanswered { kind, .. } => {
                *unknown.entry(format!("{kind}{UNANSWERED}")).or_default() += 1;
            }
            MessagePart::Result { pieces, .. } => note_unknown(pieces, unknown),
            _ => {}
        }
    }
}

impl Input {
    /// Returns whether the input contains only text that the program added.
    fn only_added(&self) -> bool {
        !self.pieces.iter().any(|p| matches!(p, MessagePart::Said(_) | MessagePart::Result { .. }))
    }
}

/// Tokens before the first message from which a recording that begins within a conversation hides too
/// much of it. A system prompt with tools rarely has as many.
const LARGE_PREFIX: u64 = 60_000;

/// Builder of a session.
#[derive(Default)]
struct SessionBuilder {
    items: Vec<Located>,
    warnings: Vec<String>,
    ids: HashSet<String>,
    /// New names of call ids that occur twice in a recording.
    calls: HashMap<String, String>,
    /// Context that waits for the next message, by window.
    held: HashMap<Option<String>, Vec<Part>>,
    /// Line and time of the current step.
    line: usize,
    stamp: Option<String>,
    /// Subagent of the current window. `None` = the main conversation.
    agent: Option<String>,
    start: Option<i64>,
    /// Tokens of system prompt and tools that the recording lacks.
    prefix_tokens: Option<u64>,
    /// Whether prompts that fall tell of no compaction.
    drops_content: bool,
    /// Places of the calls that are known to be single ones, so counters that cannot be are removed.
    aside: HashSet<usize>,
}

impl SessionBuilder {
    fn step(&mut self, step: RecordingStep) {
        (self.line, self.stamp) = (step.line, step.stamp);
        match step.what {
            StepKind::System(text) if !self.window_begun() => self.system(text),
            StepKind::Tools(definitions) if !self.window_begun() => {
                let agent = self.agent.clone();
                self.entry(Entry::Tools { definitions, agent });
            }
            StepKind::Input(input) => self.input(input),
            StepKind::Reply(reply) => self.reply(reply),
            // Compactions in a subagent's window do not count as compactions of the session.
            StepKind::Compaction(c) if self.agent.is_some() => {
                c.reply.into_iter().for_each(|reply| self.call(*reply));
            }
            StepKind::Compaction(c) => self.compaction(c),
            StepKind::Cleared if self.agent.is_some() => {}
            StepKind::Cleared => {
                self.held.remove(&None);
                self.entry(Entry::Clear);
            }
            _ => {}
        }
    }

    fn input(&mut self, input: Input) {
        let mut said = Vec::new();
        for piece in input.pieces {
            match piece {
                MessagePart::Result { call_id, pieces, is_error } => {
                    let parts = pieces.into_iter().filter_map(MessagePart::into_part).collect();
                    self.result(&call_id, parts, is_error.then_some(true));
                }
                MessagePart::Added(part, place) => self.added(part, place),
                other => said.extend(other.into_part()),
            }
        }
        if !said.is_empty() {
            self.user(input.id.as_deref(), said);
        }
    }

    fn added(&mut self, part: Part, place: ContextPlace) {
        match place {
            _ if self.begun() => self.hold(part),
            ContextPlace::Message => self.hold(part),
            ContextPlace::System => {
                part.as_text().into_iter().for_each(|t| self.system(t.to_string()));
            }
            ContextPlace::Memory(path) => {
                if let Some(text) = part.as_text().map(str::to_string) {
                    self.entry(Entry::Memory { path, text });
                }
            }
        }
    }

    fn system(&mut self, text: String) {
        let agent = self.agent.clone();
        self.entry(Entry::System { text, agent });
    }

    /// Returns whether a user message or a reply was added.
    fn begun(&self) -> bool {
        self.items.iter().any(|i| i.entry.is_message())
    }

    /// Returns whether the current window has a user message or a reply.
    fn window_begun(&self) -> bool {
        let of_window = |e: &Entry| e.agent() == self.agent.as_deref();
        self.items.iter().any(|i| i.entry.is_message() && of_window(&i.entry))
    }

    /// Adds a call whose reply is no part of the session.
    fn call(&mut self, reply: RecordingReply) {
        let Some(usage) = counted(&reply) else { return };
        let (at, agent) = (self.at(), self.agent.clone());
        let is_single = reply.is_single || !reply.pieces.is_empty();
        self.aside.extend(is_single.then_some(self.items.len()));
        self.entry(Entry::RecordedCall(RecordedCall { usage, model: reply.model, at, agent }));
    }

    fn entry(&mut self, entry: Entry) {
        self.items.push(Located { line: self.line, entry });
    }

    /// Keeps a text that the program added to the context. It joins the next user message. If a
    /// reply comes first, it joins the tool result before the reply. If there is none, it becomes a
    /// user message.
    fn hold(&mut self, part: Part) {
        self.held.entry(self.agent.clone()).or_default().push(part);
    }

    fn user(&mut self, id: Option<&str>, parts: Vec<Part>) {
        let mut all = self.held.remove(&self.agent).unwrap_or_default();
        all.extend(parts);
        let (text, parts) = single_text(all);
        let (id, at, agent) = (self.unique(id), self.at(), self.agent.clone());
        self.entry(Entry::User(UserEntry { id, text, parts, at, agent }));
    }

    fn reply(&mut self, reply: RecordingReply) {
        let usage = counted(&reply);
        self.size_of_prefix(&reply);
        let RecordingReply { id, pieces, model, .. } = reply;
        let (results, pieces): (Vec<MessagePart>, Vec<MessagePart>) =
            pieces.into_iter().partition(|p| matches!(p, MessagePart::Result { .. }));
        let mut parts: Vec<Part> = pieces.into_iter().filter_map(MessagePart::into_part).collect();
        // A tool of the provider returns its result within the reply, which remains one request.
        // Results for calls of an earlier reply come before this one.
        let called = |result: &MessagePart| {
            let MessagePart::Result { call_id, .. } = result else { return false };
            parts.iter().filter_map(Part::as_call).any(|call| *call.id == **call_id)
        };
        let (own, earlier): (Vec<MessagePart>, Vec<MessagePart>) =
            results.into_iter().partition(called);
        self.input(Input { pieces: earlier, ..Input::default() });
        if self.held.contains_key(&self.agent) {
            let agent = &self.agent;
            let mut entries = self.items.iter_mut().rev().map(|i| &mut i.entry);
            match entries.find(|e| e.agent() == agent.as_deref()) {
                Some(Entry::Tool(t)) => {
                    let mut all = t.content();
                    all.append(&mut self.held.remove(agent).unwrap_or_default());
                    (t.output, t.parts) = (None, Some(all));
                }
                _ => self.user(None, Vec::new()),
            }
        }
        for part in &mut parts {
            if let Part::Call(call) = part {
                let id = self.unique(Some(&call.id));
                self.calls.insert(call.id.to_string(), id.clone());
                call.id = id.into();
            }
        }
        let (text, parts) = single_text(parts);
        let (id, at, agent) = (self.unique(id.as_deref()), self.at(), self.agent.clone());
        let entry =
            AssistantEntry { id, text, parts, usage, model, at, agent, ..Default::default() };
        self.entry(Entry::Assistant(entry));
        self.input(Input { pieces: own, ..Input::default() });
    }

    /// Notes the tokens of a prompt without counters beyond the visible content before it.
    fn size_of_prefix(&mut self, reply: &RecordingReply) {
        let mut entries = self.items.iter().map(|item| &item.entry);
        if let Some(prompt) = reply.uncounted_prompt.filter(|_| self.prefix_tokens.is_none())
            && !entries.any(|e| matches!(e, Entry::RecordedCompaction(_) | Entry::Clear))
        {
            let by = calibration::counting_of(reply.model.as_deref()).for_visible_text();
            let visible = calibration::content(self.items.iter().map(|item| &item.entry), &by);
            self.prefix_tokens = Some(prompt.saturating_sub(visible));
        }
    }

    fn result(&mut self, call_id: &str, parts: Vec<Part>, is_error: Option<bool>) {
        let call_id = self.calls.get(call_id).map_or(call_id, String::as_str).to_string();
        let (output, parts) = single_text(parts);
        let (at, agent) = (self.at(), self.agent.clone());
        let entry = ToolEntry { call_id, output, parts, is_error, at, agent, ..Default::default() };
        self.entry(Entry::Tool(entry));
    }

    fn compaction(&mut self, c: RecordingCompaction) {
        let entry = RecordedCompaction {
            pre_tokens: c.pre_tokens,
            post_tokens: c.post_tokens,
            summary: c.summary,
            trigger: c.trigger,
            instructions: c.instructions,
            usage: c.reply.as_deref().and_then(counted),
            model: c.reply.and_then(|reply| reply.model),
            at: self.at(),
        };
        self.entry(Entry::RecordedCompaction(entry));
    }

    /// Returns the milliseconds since the session began. If the main conversation has no time, the
    /// first requested stamp is the beginning.
    fn at(&mut self) -> Option<Millis> {
        let now = time::millis(self.stamp.as_deref()?)?;
        let start = *self.start.get_or_insert(now);
        Some(u64::try_from(now.saturating_sub(start)).unwrap_or_default())
    }

    /// Returns the session, or an error if it has no messages.
    fn finish(
        mut self,
        format: &str,
        file: &str,
        mut header: Header,
    ) -> Result<Loaded, InputError> {
        if !self.begun() {
            let why = self.warnings.join("; ");
            let why = if why.is_empty() { why } else { format!(" ({why})") };
            let what = format!("no messages{why}");
            let expected = format!("a recording of {format} with at least one message");
            return Err(InputError::new(1, what, expected, "check the format").at(file));
        }
        header.version = crate::jsonl::VERSION;
        header.started = self.start.and_then(time::of_millis);
        if header.id.trim().is_empty() {
            header.id = Read::of_bytes(&[], file).stem().to_string();
        }
        if header.title.trim().is_empty() {
            header.title = self.items.iter().find_map(title).unwrap_or_default();
        }
        let mut replies = self.items.iter().filter_map(|i| i.entry.as_reply());
        header.model =
            replies.find_map(|reply| reply.model.clone().filter(|_| reply.agent.is_none()));
        self.warnings.extend(plausible::drop_zero_counters(&mut self.items, file));
        let (items, aside) = (&mut self.items, &self.aside);
        self.warnings.extend(plausible::drop_impossible_counters(&header, items, aside, file));
        if !self.drops_content {
            self.warnings.extend(plausible::add_hidden_compactions(&mut self.items, file));
        }
        bounds::clamp_all(&mut header, &mut self.items, file, &mut self.warnings);
        let mut loaded = assemble(header, self.items, file, false).map_err(|f| f.at(file))?;
        let recorded = loaded.session.header.model.as_deref();
        let by = calibration::counting_of(recorded).for_visible_text();
        let main = loaded.session.entries.iter().filter(|e| e.agent().is_none());
        let prefix = calibration::prefix(main, &by, recorded);
        loaded.session.header.prefix_tokens = prefix.or(self.prefix_tokens);
        let header = &mut loaded.session.header;
        let is_hidden = header.prefix_tokens.is_some_and(|n| n > LARGE_PREFIX);
        header.source.iter_mut().for_each(|source| source.continues &= is_hidden);
        let numbers = bounds::of_header(header);
        bounds::clamp(numbers, file, 1, &mut self.warnings);
        self.warnings.append(&mut loaded.warnings);
        Ok(Loaded { warnings: self.warnings, ..loaded })
    }

    /// Returns the id if it is unused, or else a new id derived from it.
    fn unique(&mut self, wanted: Option<&str>) -> String {
        let base = wanted
            .filter(|w| !w.is_empty())
            .map_or_else(|| format!("m{}", self.items.len() + 1), str::to_string);
        if self.ids.insert(base.clone()) {
            return base;
        }
        let mut ids = (2..).map(|n| format!("{base}-{n}"));
        ids.find(|id| self.ids.insert(id.clone())).expect("there are more numbers than ids")
    }
}

/// Returns the counters of a reply. If the output counter is a stub, the count of its parts is
/// added as an estimate.
fn counted(reply: &RecordingReply) -> Option<RecordedUsage> {
    let Counters { input, output, read, write, write_1h, billing, .. } =
        reply.counters.clone().ok()?;
    let long = write_1h.unwrap_or_default().min(write);
    let estimate = || {
        let by = calibration::counting_of(reply.model.as_deref()).for_visible_text();
        let parts = reply.pieces.iter().cloned().filter_map(MessagePart::into_part);
        parts.map(|p| by.block(p.size())).sum()
    };
    Some(RecordedUsage {
        input,
        output,
        cache_read: read,
        cache_write: write - long,
        cache_write_1h: long,
        output_estimate: reply.output_is_stub.then(estimate),
        billing: *billing,
    })
}

/// Returns a single plain text as text, and anything else as parts.
fn single_text(parts: Vec<Part>) -> (Option<Arc<str>>, Option<Vec<Part>>) {
    match parts.as_slice() {
        [] => (Some(Arc::default()), None),
        [Part::Text(text)] => (Some(text.clone()), None),
        _ => (None, Some(parts)),
    }
}

/// Returns the first line of the user's last text in the message, cut after 80 characters.
fn title(item: &Located) -> Option<String> {
    let Entry::User(user @ UserEntry { agent: None, .. }) = &item.entry else { return None };
    let line = user.content().iter().rev().filter_map(Part::as_text).find_map(first_line)?;
    let short: String = line.chars().take(80).collect();
    Some(if short.len() < line.len() { format!("{}…", short.trim_end()) } else { line })
}
