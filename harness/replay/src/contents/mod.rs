//! Measures the contents of the prompts of a recorded session and their cost.
//!
//! A prompt is the list of the parts that the session has shown so far. Where the provider counted
//! more, the rest is a part that the recording lacks: before the first request the system prompt and
//! the tools, later reminders and the like. Where it counted less, all parts are scaled down. So the
//! parts add up to the counters. A read from the cache covers the beginning of a prompt, then come
//! writes and uncached input, and each part pays for its place. Without counters, a simulated cache
//! divides the prompt.

mod owner;
mod text_index;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ctxbench_core::content::{Part, ToolCall, joined_text};
use ctxbench_core::model::{self, Counting};
use ctxbench_core::tokens::{Size, content_hash};
use ctxbench_core::usage::{Ttl, Usage};
use ctxbench_provider::{Prefix, PromptCache};
use ctxbench_reports::contents::{ContentKind, ContentRow, Contents};
use ctxbench_scenarios::Scenario;
use ctxbench_session::calibration::Calibrate;
use ctxbench_session::{AssistantEntry, Entry, RecordedUsage, Surcharge};
use ctxbench_util::plural::pluralize;

use crate::billing::call_hashes;
use crate::recorded::about_prices;
use crate::{models, recording};
use owner::{owner, server};
use text_index::TextIndex;

/// Name of the system prompt and the tools of a recording that has only their size.
const BY_SIZE: &str = "and tools";

/// Share of a prompt from which scaling is told.
const SCALED: f64 = 0.98;

/// Returns the contents of a session; `None` if its main conversation has no request.
pub fn contents(scenario: &Scenario) -> Option<Contents> {
    let session = &scenario.session;
    let own = models::own(session);
    let mut reader = ContentReader {
        by: recording::counting(session, own, Calibrate::Recording),
        model: session.header.model.as_deref().unwrap_or(&own.name),
        counted: session.has_counters(),
        ttl: recording::lifetime(session),
        ..ContentReader::default()
    };
    if !reader.counted
        && let Some(tokens) = session.header.prefix_tokens
    {
        let part = reader.add(None, ContentKind::SystemPrompt, BY_SIZE, tokens, false);
        reader.parts[part].is_fixed = true;
    }
    let mut seen = HashSet::new();
    for (entry, id) in session.entries.iter().zip(call_hashes(session)) {
        reader.entry(entry, id.is_none_or(|id| seen.insert(id)));
    }
    reader.finish(scenario)
}

/// A part of the prompts of one conversation.
#[derive(Default)]
struct ContentPart {
    /// Index of its row, and of the row of its file.
    row: usize,
    file: Option<usize>,
    tokens: u64,
    /// Share that another part of the context has, too.
    repeated: f64,
    /// For results before a reply: whether that or a later reply used them.
    used: Option<bool>,
    /// Whether an earlier prompt had it.
    was_sent: bool,
    /// Whether every prompt has it, whatever is compacted.
    is_fixed: bool,
    is_reply: bool,
    is_reasoning: bool,
    /// Whether it is reasoning from before the newest turn.
    is_earlier: bool,
}

#[derive(Default)]
struct Window {
    /// Parts by index.
    context: Vec<usize>,
    requests: u64,
    /// Whether the last entry is a tool result, after which a user message begins no turn.
    in_cycle: bool,
}

/// The main conversation at its largest prompt.
#[derive(Default)]
struct Peak {
    request: u64,
    tokens: u64,
    parts: Vec<(usize, u64)>,
}

#[derive(Default)]
struct ContentReader<'a> {
    by: Counting,
    /// Name of the session's model.
    model: &'a str,
    counted: bool,
    ttl: Ttl,
    rows: Vec<ContentRow>,
    files: Vec<ContentRow>,
    parts: Vec<ContentPart>,
    windows: BTreeMap<Option<&'a str>, Window>,
    texts: TextIndex,
    /// Row and file of each call, by id.
    calls: BTreeMap<Arc<str>, (ContentKind, String, Option<String>)>,
    /// Results since the last reply.
    waiting: Vec<usize>,
    /// Simulated caches by model.
    caches: BTreeMap<&'a str, PromptCache>,
    peak: Peak,
    output_usd: f64,
    other_usd: f64,
    unpriced: usize,
    uncounted: usize,
    /// Number of prompts that the provider counted lower than their parts, and the lowest share.
    scaled: (u64, f64),
}

/// Returns the index of a row, which is added if there is none.
fn row(rows: &mut Vec<ContentRow>, kind: ContentKind, name: &str) -> usize {
    rows.iter().position(|r| r.kind == kind && r.name == name).unwrap_or_else(|| {
        rows.push(ContentRow::new(kind, name));
        rows.len() - 1
    })
}

impl<'a> ContentReader<'a> {
    /// Adds a part to a conversation. Content of subagents belongs to one row for each of them.
    fn add(
        &mut self,
        agent: Option<&'a str>,
        kind: ContentKind,
        name: &str,
        tokens: u64,
        is_reply: bool,
    ) -> usize {
        let own = agent.map(|id| format!("{id}, its own requests"));
        let (kind, name) = match &own {
            Some(own) => (ContentKind::Subagent, own.as_str()),
            None => (kind, name),
        };
        let row = row(&mut self.rows, kind, name);
        self.rows[row].parts += 1;
        self.parts.push(ContentPart {
            row,
            tokens,
            is_reply,
            is_reasoning: kind == ContentKind::Reasoning,
            ..ContentPart::default()
        });
        let part = self.parts.len() - 1;
        self.windows.entry(agent).or_default().context.push(part);
        part
    }

    fn text(&mut self, agent: Option<&'a str>, kind: ContentKind, name: &str, text: &str) {
        let part = self.add(agent, kind, name, self.by.block(Size::text(text)), false);
        self.parts[part].is_fixed = kind != ContentKind::Summary;
        if agent.is_some() {
            return;
        }
        if matches!(kind, ContentKind::MemoryFile | ContentKind::File) {
            self.parts[part].repeated = self.texts.result(part, text);
            let is_path = name.contains(['/', '.']);
            self.parts[part].file = is_path.then(|| self.file(name));
        } else {
            self.texts.other(text);
        }
    }

    fn file(&mut self, path: &str) -> usize {
        let file = row(&mut self.files, ContentKind::File, path);
        self.files[file].parts += 1;
        file
    }

    fn entry(&mut self, entry: &'a Entry, is_billed: bool) {
        let agent = entry.agent();
        match entry {
            Entry::System { text, .. } => self.text(agent, ContentKind::SystemPrompt, "", text),
            Entry::Tools { definitions, .. } => {
                for d in definitions {
                    let tool = d["name"].as_str().unwrap_or_default();
                    let (kind, name) = match tool.contains("__") {
                        true => (ContentKind::McpServer, server(tool)),
                        false => (ContentKind::ToolDefinitions, ""),
                    };
                    self.text(agent, kind, name, &d.to_string());
                }
            }
            Entry::Memory { path, text } => self.text(None, ContentKind::MemoryFile, path, text),
            Entry::RepoMap { text } => self.text(None, ContentKind::File, "repository map", text),
            Entry::File { path, text, .. } => self.text(None, ContentKind::File, path, text),
            Entry::User(user) => {
                let window = self.windows.entry(agent).or_default();
                for part in window.context.iter().filter(|_| !window.in_cycle) {
                    self.parts[*part].is_earlier = self.parts[*part].is_reasoning;
                }
                for part in user.content() {
                    self.add_part(agent, ContentKind::UserMessages, "", &part);
                }
            }
            Entry::Assistant(reply) => self.reply(reply, is_billed),
            Entry::Tool(result) => {
                self.windows.entry(agent).or_default().in_cycle = true;
                let name = result.name.as_deref().unwrap_or("unknown");
                let own = self.calls.get(result.call_id.as_str()).cloned();
                let own = own.unwrap_or_else(|| owner(&ToolCall::new("", name, "")));
                let (kind, name, path) = own;
                for part in result.content() {
                    let added = self.add_part(agent, kind, &name, &part);
                    if agent.is_none() && self.rows[self.parts[added].row].kind == kind {
                        self.parts[added].repeated = self.texts.result(added, part.text());
                        self.waiting.push(added);
                        self.parts[added].file = path.as_deref().map(|path| self.file(path));
                    }
                }
            }
            Entry::RecordedCompaction(c) => {
                if let Some(usage) = c.usage.as_ref().filter(|_| is_billed) {
                    self.other_usd += self.priced(c.model.as_deref(), usage).map_or(0.0, total);
                }
                self.begin_context();
                if let Some(summary) = &c.summary {
                    self.text(None, ContentKind::Summary, "", summary);
                }
            }
            Entry::RecordedCall(call) if is_billed => {
                let usd = self.priced(call.model.as_deref(), &call.usage).map_or(0.0, total);
                self.other_usd += usd;
            }
            Entry::Clear | Entry::NewSession => self.begin_context(),
            _ => {}
        }
    }

    /// Begins a context with only the parts that every prompt has.
    fn begin_context(&mut self) {
        let window = self.windows.entry(None).or_default();
        window.context.retain(|p| self.parts[*p].is_fixed);
        self.texts.forget_lines();
    }

    /// Adds a part of a message or a result. Texts in tags are the program's.
    fn add_part(
        &mut self,
        agent: Option<&'a str>,
        kind: ContentKind,
        name: &str,
        part: &Part,
    ) -> usize {
        let text = part.text();
        let is_notice = match kind {
            ContentKind::UserMessages => text.trim_start().starts_with('<'),
            _ => text.trim_start().starts_with("<system-reminder>"),
        };
        let (kind, name) = if is_notice { (ContentKind::ProgramNotices, "") } else { (kind, name) };
        if agent.is_none()
            && matches!(kind, ContentKind::UserMessages | ContentKind::ProgramNotices)
        {
            self.texts.other(text);
        }
        self.add(agent, kind, name, self.by.block(part.size()), false)
    }

    fn reply(&mut self, reply: &'a AssistantEntry, is_billed: bool) {
        let agent = reply.agent.as_deref();
        let model = reply.model.as_deref().unwrap_or(self.model);
        match &reply.usage {
            Some(usage) if usage.prompt() > 0 => self.request(agent, model, usage, is_billed),
            None if !self.counted => self.uncounted_request(agent, model, reply),
            _ => self.uncounted += 1,
        }
        self.windows.entry(agent).or_default().in_cycle = false;
        let parts = reply.content();
        if agent.is_none() {
            for part in self.waiting.drain(..) {
                self.parts[part].used = Some(false);
            }
            let texts = parts.iter().map(|p| Part::Text(p.text().into())).collect::<Vec<_>>();
            let all = &mut self.parts;
            self.texts.reply(&joined_text(&texts, "\n"), |part| all[part].used = Some(true));
        }
        for part in &parts {
            let tokens = self.by.block(part.size());
            let Part::Call(call) = part else {
                let kind = match part {
                    Part::Reasoning { .. } => ContentKind::Reasoning,
                    _ => ContentKind::Replies,
                };
                self.add(agent, kind, "", tokens, true);
                continue;
            };
            let (kind, name, path) = owner(call);
            let added = self.add(agent, kind, &name, tokens, true);
            if agent.is_none() {
                self.parts[added].file = path.as_deref().map(|path| self.file(path));
            }
            self.calls.insert(call.id.clone(), (kind, name, path));
        }
    }

    /// Bills a prompt to its parts by the provider's counters.
    fn request(
        &mut self,
        agent: Option<&'a str>,
        model: &'a str,
        usage: &RecordedUsage,
        is_billed: bool,
    ) {
        let billed = is_billed.then(|| self.priced(Some(model), usage)).flatten();
        if let Some((usd, fees)) = billed {
            self.output_usd += usd.output;
            self.other_usd += fees;
        }
        let known: u64 = self.visible(agent, model).iter().map(|p| self.parts[*p].tokens).sum();
        let prompt = usage.prompt();
        if prompt > known {
            let window = self.windows.entry(agent).or_default();
            let first = window.requests == 0;
            let kind = |p: &usize| self.rows[self.parts[*p].row].kind;
            let has_system = window.context.iter().any(|p| kind(p) <= ContentKind::ToolDefinitions);
            let (kind, name) = match first && !has_system {
                true => (ContentKind::SystemPrompt, BY_SIZE),
                false => (ContentKind::NotInTheFile, ""),
            };
            let part = self.add(agent, kind, name, prompt - known, false);
            self.parts[part].is_fixed = first;
            if first {
                self.windows.entry(agent).or_default().context.rotate_right(1);
            }
        } else if known > prompt && agent.is_none() {
            let share = prompt as f64 / known as f64;
            let (n, lowest) = self.scaled;
            self.scaled = (n + 1, if n == 0 { share } else { lowest.min(share) });
        }
        self.bill(agent, model, &Usage::from(usage), billed.map(|(usd, _)| usd));
    }

    /// Bills an estimated prompt by a simulated cache with the model's rule and prices.
    fn uncounted_request(
        &mut self,
        agent: Option<&'a str>,
        model: &'a str,
        reply: &AssistantEntry,
    ) {
        let Some(priced) = model::priced_as(model) else {
            self.unpriced += 1;
            return self.bill(agent, model, &Usage::default(), None);
        };
        let context = self.visible(agent, model);
        let mark = priced.cache.needs_breakpoints().then_some(self.ttl);
        let (mut hash, mut tokens, mut all) = (content_hash(model.as_bytes()), 0, Vec::new());
        for (i, p) in context.iter().enumerate() {
            hash = content_hash(&[hash.to_le_bytes(), (*p as u64).to_le_bytes()].concat());
            tokens += self.parts[*p].tokens;
            let cache = mark.filter(|_| i == 0 || i + 1 == context.len());
            all.push(Prefix { hash, tokens, cache, reply: self.parts[*p].is_reply });
        }
        let cache = self.caches.entry(model).or_insert_with(|| PromptCache::new(priced.cache));
        let at = reply.at.unwrap_or_default();
        let used = cache.use_prefixes(&all, at, at);
        let output = reply.content().iter().map(|p| self.by.block(p.size())).sum();
        let usd = model::cost(priced, &Usage { output, ..used });
        self.output_usd += usd.output;
        self.bill(agent, model, &used, Some(usd));
    }

    /// Returns the parts that a model's prompt contains.
    fn visible(&self, agent: Option<&str>, model: &str) -> Vec<usize> {
        let keeps = model::keeps_thinking(model);
        let context = self.windows.get(&agent).map_or(&[][..], |w| &w.context);
        context.iter().copied().filter(|p| keeps || !self.parts[*p].is_earlier).collect()
    }

    /// Divides a prompt and its cost among its parts, and keeps the largest.
    fn bill(
        &mut self,
        agent: Option<&'a str>,
        model: &str,
        used: &Usage,
        usd: Option<model::Cost>,
    ) {
        let usd = usd.unwrap_or_default();
        let price = |tokens: u64, usd: f64| (tokens, usd / tokens.max(1) as f64);
        // A cache writes for long first, then for short.
        let kinds = [
            price(used.cache_read, usd.cache_read),
            price(used.cache_write_1h, usd.cache_write_1h),
            price(used.cache_write, usd.cache_write_5m),
            price(used.input, usd.input),
        ];
        let context = self.visible(agent, model);
        let known: u64 = context.iter().map(|p| self.parts[*p].tokens).sum();
        let prompt = if used.prompt() > 0 { used.prompt() } else { known };
        let place =
            |at: u64| (u128::from(at) * u128::from(prompt) / u128::from(known.max(1))) as u64;
        let mut parts = Vec::with_capacity(context.len());
        let mut before = 0;
        for part in context {
            let own = &mut self.parts[part];
            let (from, to) = (place(before), place(before + own.tokens));
            before += own.tokens;
            parts.push((part, to - from));
            let mut start = 0;
            for (i, (tokens, price)) in kinds.iter().enumerate() {
                let end = start + tokens;
                let usd = to.min(end).saturating_sub(from.max(start)) as f64 * price;
                start = end;
                let rows = [Some(&mut self.rows[own.row]), own.file.map(|f| &mut self.files[f])];
                for row in rows.into_iter().flatten() {
                    match (own.was_sent, i) {
                        (false, _) => row.first_usd += usd,
                        (true, 0) => row.cached_usd += usd,
                        (true, _) => row.again_usd += usd,
                    }
                }
            }
            own.was_sent = true;
        }
        let window = self.windows.entry(agent).or_default();
        window.requests += 1;
        if agent.is_none() && prompt > self.peak.tokens {
            self.peak = Peak { request: window.requests, tokens: prompt, parts };
        }
    }

    /// Returns the cost of counters in USD, and fees that do not depend on tokens.
    fn priced(&mut self, model: Option<&str>, usage: &RecordedUsage) -> Option<(model::Cost, f64)> {
        let Some(m) = model::priced_as(model.unwrap_or(self.model)) else {
            self.unpriced += 1;
            return None;
        };
        let terms = Surcharge::new(m, usage);
        let mut priced = m.clone();
        priced.prices = priced.prices.times(terms.factor);
        let output = usage.output_estimate.map_or(usage.output, |n| n.max(usage.output));
        let cost = model::cost(&priced, &Usage { output, ..Usage::from(usage) });
        Some((cost, terms.fees_usd))
    }

    fn finish(mut self, scenario: &Scenario) -> Option<Contents> {
        if self.peak.request == 0 {
            return None;
        }
        for (part, tokens) in &self.peak.parts {
            let p = &self.parts[*part];
            let rows = [Some(&mut self.rows[p.row]), p.file.map(|f| &mut self.files[f])];
            for row in rows.into_iter().flatten() {
                row.peak_tokens += tokens;
                row.repeated_tokens += (*tokens as f64 * p.repeated).round() as u64;
                row.unused_tokens += if p.used == Some(false) { *tokens } else { 0 };
            }
        }
        for rows in [&mut self.rows, &mut self.files] {
            rows.retain(|r| r.peak_tokens > 0 || r.usd() > 0.0);
            rows.sort_by(|a, b| {
                let by_usd = || b.usd().total_cmp(&a.usd());
                b.peak_tokens.cmp(&a.peak_tokens).then_with(by_usd)
            });
        }
        let about = about_prices(&scenario.session, None);
        let mut notes = Vec::new();
        notes.extend(about.iter().map(|remark| format!("Dollars: {remark}.")));
        if about.is_empty() && self.unpriced > 0 {
            let calls = pluralize(self.unpriced, "call");
            notes.push(format!("{calls} without a known price cost nothing here."));
        }
        if self.counted && self.uncounted > 0 {
            let replies = pluralize(self.uncounted, "reply");
            notes.push(format!("{replies} without counters: their prompts are not in it."));
        }
        let (scaled, lowest) = self.scaled;
        if lowest < SCALED && scaled > 0 {
            notes.push(format!(
                "The provider counted less than the recording shows in {}, at least {:.0} % of it; \
                 their parts are scaled.",
                pluralize(scaled as usize, "prompt"),
                100.0 * lowest
            ));
        }
        Some(Contents {
            session: scenario.id.clone(),
            title: scenario.title.clone(),
            model: self.model.to_string(),
            peak_request: self.peak.request,
            requests: self.windows.get(&None).map_or(0, |w| w.requests),
            peak_tokens: self.peak.tokens,
            counted: self.counted,
            input_usd: self.rows.iter().map(ContentRow::usd).sum(),
            rows: self.rows,
            files: self.files,
            output_usd: self.output_usd,
            other_usd: self.other_usd,
            notes,
        })
    }
}

fn total((usd, fees): (model::Cost, f64)) -> f64 {
    usd.total() + fees
}

#[cfg(test)]
mod tests;
