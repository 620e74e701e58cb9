//! Extracts the instruction and the conversation from a prompt.
//!
//! Prompts of ctxbench's engine are labelled: its blocks have kinds, and a transcript marks its
//! quotations. Only a prompt of another program is interpreted by its text. Three shapes are known:
//! the whole history followed by a user message with the instruction; one user message with a
//! transcript between tags, the instruction and perhaps the previous summary; and an instruction as
//! the system message with a transcript under role headings.

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_provider::{Content, Item, Prompt};

use super::transcript;
use super::words::{WORDS, has_any};

/// Author of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    User,
    /// Text that the product sent as the user: memory files, environment.
    Context,
    Assistant,
    /// Reasoning of the model.
    Reasoning,
    /// A tool call with its arguments as text.
    Call,
    Output,
    Summary,
}

/// A piece of the conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptSegment<'a> {
    pub who: Author,
    pub text: &'a str,
    /// Name of the tool, or empty if unknown.
    pub tool: &'a str,
    /// True if the result reports a failure.
    pub failed: bool,
}

/// Returns the author of a text of this kind. A user message of a recording may be written by the
/// program, so its text decides here too.
fn author_of(kind: BlockKind, text: &str) -> Author {
    match kind {
        BlockKind::User | BlockKind::ReplayedUser | BlockKind::Image => user_or_other(text),
        BlockKind::Assistant => Author::Assistant,
        BlockKind::Reasoning => Author::Reasoning,
        BlockKind::Call => Author::Call,
        BlockKind::Output => Author::Output,
        BlockKind::Summary | BlockKind::Compaction => Author::Summary,
        BlockKind::Base
        | BlockKind::Context
        | BlockKind::RepoMap
        | BlockKind::File
        | BlockKind::Ack
        | BlockKind::Reminder
        | BlockKind::Unrecorded
        | BlockKind::Marker
        | BlockKind::Continue
        | BlockKind::SummaryPrompt
        | BlockKind::CompactionTrigger => Author::Context,
    }
}

impl<'a> PromptSegment<'a> {
    /// Creates a segment without a tool.
    pub fn new(who: Author, text: &'a str) -> Self {
        PromptSegment { who, text, tool: "", failed: false }
    }
}

/// Parts of a prompt.
#[derive(Debug, Default)]
pub(super) struct ParsedPrompt<'a> {
    /// Instruction for the summariser.
    pub instruction: String,
    /// Wishes for summaries in the project's memory files.
    pub wishes: String,
    /// Segments of the conversation, oldest first.
    pub segments: Vec<PromptSegment<'a>>,
}

/// Tags of products around the previous summary.
const PRIOR: [&str; 3] = ["prior-summary", "previous-summary", "earlier-summary"];
/// Tags around a transcript.
const TALK: [&str; 3] = ["conversation", "transcript", "history"];

/// Splits a prompt into its parts.
pub(super) fn read(prompt: &Prompt) -> ParsedPrompt<'_> {
    let beside = |i: &Item| matches!(i.role, Role::Instructions | Role::System | Role::Developer);
    let (fixed, said): (Vec<&Item>, Vec<&Item>) =
        prompt.items.iter().partition(|i| beside(i) && matches!(*i.content, Content::Text(_)));
    let system = || fixed.iter().map(|i| i.text()).collect::<Vec<_>>().join("\n");
    let mut r = ParsedPrompt::default();
    let (rest, last) = match said.split_last() {
        Some((last, rest)) if asks(last) => (rest, Some(last)),
        _ => (&said[..], None),
    };
    for i in &fixed {
        r.wishes.extend(compact_section(i.text()));
    }
    for i in rest {
        r.push(i);
    }
    match last.map(|i| (&i.shows, i.text())) {
        None => {}
        Some((Some(block), _)) if !block.quotes.is_empty() => {
            r.instruction = system() + "\n";
            r.quotes(block);
        }
        Some((Some(_), text)) => r.instruction = text.to_string(),
        Some((None, text)) => r.foreign(text, rest.is_empty(), system),
    }
    r
}

/// Returns whether an item requests the summary.
fn asks(item: &Item) -> bool {
    match (&item.shows, &*item.content) {
        (Some(b), _) => matches!(b.kind, BlockKind::SummaryPrompt | BlockKind::CompactionTrigger),
        (None, Content::Text(_)) => item.role == Role::User,
        (None, content) => matches!(content, Content::CompactionTrigger(_)),
    }
}

impl<'a> ParsedPrompt<'a> {
    fn push(&mut self, item: &'a Item) {
        let text = item.text();
        let segment = match &*item.content {
            Content::Text(_) => match &item.shows {
                Some(block) if !block.quotes.is_empty() => return self.quotes(block),
                Some(block) => PromptSegment::new(author_of(block.kind, text), text),
                None if item.role == Role::Assistant => PromptSegment::new(Author::Assistant, text),
                None => PromptSegment::new(user_or_other(text), text),
            },
            Content::Reasoning { .. } => PromptSegment::new(Author::Reasoning, text),
            Content::Call { name, .. } => {
                PromptSegment { tool: name, ..PromptSegment::new(Author::Call, text) }
            }
            Content::Output { is_error, .. } => {
                PromptSegment { failed: *is_error, ..PromptSegment::new(Author::Output, text) }
            }
            Content::Compaction { .. } => PromptSegment::new(Author::Summary, text),
            Content::Image { .. } | Content::CompactionTrigger(_) => return,
        };
        if segment.who == Author::Context {
            self.wishes.extend(compact_section(text));
        }
        if !text.trim().is_empty() {
            self.segments.push(segment);
        }
    }

    /// Adds the quotations of a block: the conversation, and the instruction around it.
    fn quotes(&mut self, block: &'a Block) {
        for (q, text) in block.quoted() {
            let (tool, failed) = (q.call.as_ref().map_or("", |c| &c.name), q.is_error);
            match (q.kind, text.trim()) {
                (BlockKind::SummaryPrompt, _) => self.instruction.push_str(text),
                (kind, text) if !text.is_empty() || kind == BlockKind::Call => {
                    let who = author_of(kind, text);
                    self.segments.push(PromptSegment { who, text, tool, failed });
                }
                _ => {}
            }
        }
    }

    /// Splits the request text of a foreign program. `alone` = the request contains nothing else.
    fn foreign(&mut self, text: &'a str, alone: bool, system: impl Fn() -> String) {
        if let Some((before, inside, after)) = TALK.iter().find_map(|tag| cut_tag(text, tag)) {
            self.instruction = system() + "\n" + before + "\n";
            let kept = take_prior(after, &mut self.segments);
            self.instruction.push_str(&kept);
            transcript::split(inside, &mut self.segments);
        } else if let Some(at) = transcript::first_marker(text) {
            self.instruction = system() + "\n" + &text[..at];
            transcript::split(&text[at..], &mut self.segments);
        } else if alone && !asks_for_summary(text) && asks_for_summary(&system()) {
            self.instruction = system();
            transcript::split(text, &mut self.segments);
        } else {
            self.instruction = take_prior(text, &mut self.segments);
        }
    }
}

/// Returns the author of a text from the user's side: the user, a memory file or other context, or
/// an earlier summary with a lead-in.
pub(super) fn user_or_other(text: &str) -> Author {
    let head = text.trim_start();
    let first = head.lines().next().unwrap_or("");
    if head.starts_with("<summary>") || head.starts_with("<analysis>") || is_earlier_summary(head) {
        Author::Summary
    } else if is_tag(first)
        || (text.len() > 400 && (first.contains("AGENTS.md") || first.contains("CLAUDE.md")))
    {
        Author::Context
    } else {
        Author::User
    }
}

fn is_tag(line: &str) -> bool {
    let name = line.strip_prefix('<').and_then(|l| l.split(['>', ' ']).next()).unwrap_or("");
    name.len() > 3 && name.bytes().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-'))
}

/// Returns whether a text introduces a list about earlier events.
fn is_earlier_summary(text: &str) -> bool {
    let head = text[..text.floor_char_boundary(300)].to_lowercase();
    if !has_any(&head, &WORDS.earlier) {
        return false;
    }
    let listed = text
        .lines()
        .filter(|l| l.starts_with("- ") || l.starts_with("* ") || l.starts_with("## "))
        .take(3)
        .count();
    listed >= 3 || text.contains("<summary>") || (listed > 0 && text.len() < 800)
}

/// Returns whether a text looks like a request for a summary.
fn asks_for_summary(text: &str) -> bool {
    let low = text[..text.floor_char_boundary(4_000)].to_lowercase();
    has_any(&low, &WORDS.asks)
}

/// Returns `(before, inside, after)` of a tag. The last closing tag counts, because the
/// conversation may quote it.
fn cut_tag<'a>(text: &'a str, tag: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let start = text.find(&open)?;
    let end = text.rfind(&close).filter(|&e| e >= start + open.len())?;
    Some((&text[..start], &text[start + open.len()..end], &text[end + close.len()..]))
}

/// Moves the previous summary into the segments and returns the rest of the instruction.
fn take_prior<'a>(text: &'a str, segments: &mut Vec<PromptSegment<'a>>) -> String {
    match PRIOR.iter().find_map(|tag| cut_tag(text, tag)) {
        Some((before, inside, after)) => {
            if !inside.trim().is_empty() {
                segments.push(PromptSegment::new(Author::Summary, inside));
            }
            format!("{before}\n{after}")
        }
        None => text.to_string(),
    }
}

/// Returns the part of a memory file under a heading such as `# Compact instructions`.
fn compact_section(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with('#') {
            let low = line.to_lowercase();
            inside = low.contains("compact") && low.contains("instruction");
        } else if inside {
            out.push_str(line);
            out.push('\n');
        }
    }
    (!out.is_empty()).then_some(out)
}
