//! Extracts the instruction and the conversation from a summary request.
//!
//! Prompts of ctxbench's engine are labelled: its blocks have kinds, and a transcript marks its
//! quotations. Only a prompt of another program is interpreted by its text. It is either the whole
//! history followed by a user message with the instruction, or one message with a transcript, whose
//! lines name the speakers.

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_provider::{Item, Prompt};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Assistant,
    /// A tool call with its arguments as text.
    Call,
    Output,
    Summary,
    /// Text that the product sends again after a compaction: memory files, environment, markers.
    Product,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub who: Author,
    pub text: &'a str,
}

#[derive(Debug, Default)]
pub(super) struct SummaryRequest<'a> {
    pub instruction: String,
    /// Segments of the conversation, oldest first.
    pub segments: Vec<Segment<'a>>,
}

/// Tags of products around the previous summary.
const EARLIER: [&str; 3] = ["prior-summary", "previous-summary", "earlier-summary"];
/// Tags of products around a transcript.
const TRANSCRIPT: [&str; 3] = ["conversation", "transcript", "history"];

impl<'a> SummaryRequest<'a> {
    pub fn read(prompt: &'a Prompt) -> SummaryRequest<'a> {
        let beside =
            |i: &Item| matches!(i.role, Role::Instructions | Role::System | Role::Developer);
        let (fixed, said): (Vec<&Item>, Vec<&Item>) =
            prompt.items.iter().partition(|i| beside(i) && i.is_text());
        let system = fixed.iter().map(|i| format!("{}\n", i.text())).collect::<String>();
        let mut request = SummaryRequest::default();
        let (rest, last) = match said.split_last() {
            Some((last, rest)) if asks(last) => (rest, Some(*last)),
            _ => (&said[..], None),
        };
        for item in rest {
            request.push(item);
        }
        match last.map(|i| (&i.shows, i.text())) {
            None => {}
            Some((Some(block), _)) if !block.quotes.is_empty() => {
                request.instruction = system;
                request.quotes(block);
            }
            Some((Some(_), text)) => request.instruction = text.to_string(),
            Some((None, text)) => request.foreign(text, rest.is_empty(), &system),
        }
        request
    }

    fn add(&mut self, who: Author, text: &'a str) {
        let text = text.trim();
        // A user message of a recording or a transcript may be written by the program.
        let who = if who == Author::User { user_or_program(text) } else { who };
        if !text.is_empty() {
            self.segments.push(Segment { who, text });
        }
    }

    fn push(&mut self, item: &'a Item) {
        match (item.kind, &item.shows) {
            (BlockKind::Image | BlockKind::CompactionTrigger, _) => {}
            (_, Some(block)) if item.is_text() && !block.quotes.is_empty() => self.quotes(block),
            (_, Some(block)) if item.is_text() => self.add(author_of(block.kind), item.text()),
            (BlockKind::Base | BlockKind::Context, None) => self.add(Author::User, item.text()),
            (kind, _) => self.add(author_of(kind), item.text()),
        }
    }

    /// Adds the quotations of a block: the conversation, and the instruction around it.
    fn quotes(&mut self, block: &'a Block) {
        for (quote, text) in block.quoted() {
            match quote.kind {
                BlockKind::SummaryPrompt => self.instruction.push_str(text),
                kind => self.add(author_of(kind), text),
            }
        }
    }

    /// Splits the request text of a foreign program. `alone` = the request contains nothing else.
    fn foreign(&mut self, text: &'a str, alone: bool, system: &str) {
        let tagged = TRANSCRIPT.iter().find_map(|tag| cut_tag(text, tag));
        let (before, transcript, after) = match (tagged, first_speaker(text)) {
            (Some(parts), _) => parts,
            (None, Some(at)) => (&text[..at], &text[at..], ""),
            (None, None) if alone && !system.is_empty() => ("", text, ""),
            (None, None) => (text, "", ""),
        };
        if !transcript.is_empty() {
            self.instruction = system.to_string();
        }
        for part in [before, after] {
            match EARLIER.iter().find_map(|tag| cut_tag(part, tag)) {
                Some((before, summary, after)) => {
                    self.add(Author::Summary, summary);
                    self.instruction += &format!("{before}\n{after}\n");
                }
                None => self.instruction += &format!("{part}\n"),
            }
        }
        self.transcript(transcript);
    }

    /// Splits a transcript at the lines that name a speaker. Text before the first is the user's.
    fn transcript(&mut self, text: &'a str) {
        let (mut who, mut from, mut at) = (Author::User, 0, 0);
        for line in text.split_inclusive('\n') {
            if let Some((next, name)) = speaker(line) {
                self.add(who, &text[from..at]);
                (who, from) = (next, at + name);
            }
            at += line.len();
        }
        self.add(who, &text[from..]);
    }
}

/// Minimum size of a request that must contain a conversation, bytes. A longer instruction is not
/// known.
const FULL_BYTES: usize = 8_192;

/// Returns why a large request for a summary cannot be answered: in none of its texts a conversation
/// is recognised. `None` = there is one, or the request is small, since nothing was said.
pub fn unread(prompt: &Prompt) -> Option<String> {
    let all = prompt.items.iter().filter(|i| i.role == Role::User);
    let bytes: usize = all.map(|i| i.text().len()).sum();
    (bytes > FULL_BYTES && SummaryRequest::read(prompt).segments.is_empty()).then(|| {
        format!(
            "no part of the conversation is recognised in a request for a summary of {bytes} bytes"
        )
    })
}

fn asks(item: &Item) -> bool {
    let of_user = item.is_text() && item.role == Role::User;
    item.shows.as_ref().map_or(of_user || item.kind == BlockKind::CompactionTrigger, |b| {
        matches!(b.kind, BlockKind::SummaryPrompt | BlockKind::CompactionTrigger)
    })
}

fn author_of(kind: BlockKind) -> Author {
    match kind {
        BlockKind::User | BlockKind::ReplayedUser => Author::User,
        BlockKind::Assistant | BlockKind::Reasoning => Author::Assistant,
        BlockKind::Call => Author::Call,
        BlockKind::Output => Author::Output,
        BlockKind::Summary | BlockKind::Compaction => Author::Summary,
        BlockKind::Base
        | BlockKind::Context
        | BlockKind::Image
        | BlockKind::RepoMap
        | BlockKind::File
        | BlockKind::Ack
        | BlockKind::Reminder
        | BlockKind::Unrecorded
        | BlockKind::Marker
        | BlockKind::Continue
        | BlockKind::SummaryPrompt
        | BlockKind::CompactionTrigger => Author::Product,
    }
}

/// Returns the author of a text from the user's side. A product sends its texts and an earlier
/// summary between tags.
fn user_or_program(text: &str) -> Author {
    let head = text.trim_start();
    let name = head.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
    match name {
        Some("summary" | "analysis") => Author::Summary,
        Some(name) if !name.contains(char::is_whitespace) => Author::Product,
        _ if is_named_result(head) => Author::Output,
        _ => Author::User,
    }
}

/// Returns whether a text is a tool result of a product without tools, which sends it as the user
/// after a line such as `grep:` or `grep failed:`.
fn is_named_result(text: &str) -> bool {
    let Some((first, rest)) = text.split_once('\n') else { return false };
    let name = first.trim_end().strip_suffix(':').unwrap_or_default();
    let name = name.strip_suffix(" failed").unwrap_or(name);
    !name.is_empty() && !name.contains(char::is_whitespace) && !rest.trim().is_empty()
}

/// Returns `(before, inside, after)` of a tag. The last closing tag counts, because the
/// conversation may quote it.
fn cut_tag<'a>(text: &'a str, tag: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let start = text.find(&open)?;
    let end = text.rfind(&close).filter(|&e| e >= start + open.len())?;
    Some((&text[..start], &text[start + open.len()..end], &text[end + close.len()..]))
}

/// Returns the position of the first line that names a speaker. A heading such as `# USER` must be
/// the first line of the text, because it may be one of the instruction.
fn first_speaker(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start().len();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if speaker(line).is_some() && (at <= start || line.starts_with('[')) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// Returns the speaker that a line such as `[Tool result]: …` or `# USER` names, and the length of
/// the name.
fn speaker(line: &str) -> Option<(Author, usize)> {
    let (name, length) = match line.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").map(|(name, _)| (name, name.len() + 3))?,
        None => (line.strip_prefix("# ")?, line.len()),
    };
    let who = match name.trim_end().split(' ').collect::<Vec<_>>()[..] {
        ["User" | "Human" | "USER" | "HUMAN"] => Author::User,
        ["Assistant" | "ASSISTANT"] | ["Assistant", "reasoning" | "thinking"] => Author::Assistant,
        ["Assistant", "tool", "call" | "calls"] | ["Tool", "call"] | ["CALL", ..] => Author::Call,
        ["Tool", "result" | "error" | "output"] | ["RESULT" | "TOOL", ..] => Author::Output,
        ["Summary"] | ["Previous", "summary"] => Author::Summary,
        _ => return None,
    };
    Some((who, length))
}
