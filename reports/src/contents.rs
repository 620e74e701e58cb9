//! What fills the prompts of a recorded session and what that costs: a table, `contents.csv` and a
//! page.

use std::fmt::Write as _;

use maud::html;
use serde::Serialize;

use crate::csv::table_text;
use crate::error::ReportError;
use crate::metrics::{Cell, ToCell};
use crate::stored::Files;
use crate::table::wrap;
use crate::{fmt, grid, page};

/// Kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    System,
    Definitions,
    Memory,
    File,
    User,
    /// Text that the program added to messages.
    Notice,
    Reply,
    Reasoning,
    Tool,
    Mcp,
    Skill,
    Subagent,
    Summary,
    /// Text that the provider counted and the recording lacks.
    Unrecorded,
}

impl ContentKind {
    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            ContentKind::System => "system prompt",
            ContentKind::Definitions => "tool definitions",
            ContentKind::Memory => "memory file",
            ContentKind::File => "file",
            ContentKind::User => "your messages",
            ContentKind::Notice => "program's notices",
            ContentKind::Reply => "replies",
            ContentKind::Reasoning => "reasoning",
            ContentKind::Tool => "tool",
            ContentKind::Mcp => "MCP server",
            ContentKind::Skill => "skill",
            ContentKind::Subagent => "subagent",
            ContentKind::Summary => "summary",
            ContentKind::Unrecorded => "not in the file",
        }
    }
}

/// Tokens at the largest prompt, and dollars over the session, of content of one kind and name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContentRow {
    pub kind: ContentKind,
    /// Name of the tool, server, file, skill or subagent; empty if the kind has one row.
    pub name: String,
    /// Number of parts in the session.
    pub parts: u64,
    pub peak_tokens: u64,
    /// Tokens at the largest prompt with lines that another part of the prompt has, too.
    pub repeated_tokens: u64,
    /// Tokens at the largest prompt of results from which no later reply repeats a word.
    pub unused_tokens: u64,
    /// Cost in the first prompt that contains each part, USD.
    pub first_usd: f64,
    /// Cost of reads from the prompt cache, USD.
    pub cached_usd: f64,
    /// Cost in later prompts that were not read from the cache, USD.
    pub again_usd: f64,
}

impl ContentRow {
    pub fn new(kind: ContentKind, name: &str) -> ContentRow {
        ContentRow {
            kind,
            name: name.to_string(),
            parts: 0,
            peak_tokens: 0,
            repeated_tokens: 0,
            unused_tokens: 0,
            first_usd: 0.0,
            cached_usd: 0.0,
            again_usd: 0.0,
        }
    }

    pub fn usd(&self) -> f64 {
        self.first_usd + self.cached_usd + self.again_usd
    }

    /// Returns kind and name in at most `max` characters. Of a path, the end stays.
    fn label(&self, max: usize) -> String {
        let name = fmt::one_line(&self.name);
        let kind = self.kind.name();
        let room = max.saturating_sub(kind.chars().count() + 1).max(3);
        let length = name.chars().count();
        match name.contains('/') && length > room {
            _ if name.is_empty() => kind.into(),
            true => {
                let end: String = name.chars().skip(length - room + 1).collect();
                format!("{kind} …{end}")
            }
            false => fmt::elide(&format!("{kind} {name}"), max),
        }
    }
}

/// Contents of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contents {
    pub session: String,
    pub title: String,
    pub model: String,
    /// Number of the request with the largest prompt of the main conversation, from 1.
    pub peak_request: u64,
    /// Number of requests of the main conversation.
    pub requests: u64,
    pub peak_tokens: u64,
    /// Whether tokens and cache reads are the provider's counters; otherwise they are estimated and
    /// simulated.
    pub counted: bool,
    /// Rows whose tokens add up to the largest prompt, largest first.
    pub rows: Vec<ContentRow>,
    /// Files; their tokens and dollars are part of the rows, too.
    pub files: Vec<ContentRow>,
    /// Cost of all prompts, the sum of the rows, USD.
    pub input_usd: f64,
    /// Cost of all replies, USD.
    pub output_usd: f64,
    /// Cost of requests for summaries, of calls outside the conversation, and fees, USD.
    pub other_usd: f64,
    pub notes: Vec<String>,
}

/// Largest number of rows and of files in the terminal.
const ROWS: usize = 10;
const FILES: usize = 4;

/// Width of the terminal and of a label, characters.
const WIDTH: usize = 80;
const LABEL: usize = 26;
/// Largest width of a title, characters.
const TITLE: usize = 40;

const HEAD: [&str; 8] =
    ["", "tokens", "share", "first $", "cached $", "again $", "twice", "unused"];

impl Contents {
    fn cells(&self, label: String, row: &ContentRow) -> Vec<String> {
        let tokens = |n: u64| if n == 0 { String::new() } else { fmt::tokens(n as f64) };
        let usd = |x: f64| if x == 0.0 { String::new() } else { format!("{x:.3}") };
        let share = 100.0 * row.peak_tokens as f64 / self.peak_tokens.max(1) as f64;
        vec![
            label,
            tokens(row.peak_tokens),
            if row.peak_tokens == 0 { String::new() } else { fmt::pct(share) + " %" },
            usd(row.first_usd),
            usd(row.cached_usd),
            usd(row.again_usd),
            tokens(row.repeated_tokens),
            tokens(row.unused_tokens),
        ]
    }

    fn sum(&self) -> ContentRow {
        let mut all = ContentRow::new(ContentKind::System, "");
        for row in &self.rows {
            all.peak_tokens += row.peak_tokens;
            all.repeated_tokens += row.repeated_tokens;
            all.unused_tokens += row.unused_tokens;
            all.first_usd += row.first_usd;
            all.cached_usd += row.cached_usd;
            all.again_usd += row.again_usd;
        }
        all
    }

    fn heading(&self) -> String {
        let how = if self.counted { "as the provider counted" } else { "estimated" };
        format!(
            "{}: {} ({}): the largest prompt is request {} of {}, {} tokens, {how}.",
            fmt::one_line(&self.session),
            fmt::elide(&fmt::one_line(&self.title), TITLE),
            self.model,
            self.peak_request,
            self.requests,
            self.peak_tokens
        )
    }

    fn dollars(&self) -> String {
        let how = if self.counted { "the recorded cache reads" } else { "a simulated cache" };
        format!(
            "Prompts cost ${}, by {how}: first, read from the cache, or again because the cache \
             had lost them. Replies cost ${}{}.",
            fmt::usd(self.input_usd),
            fmt::usd(self.output_usd),
            match self.other_usd {
                0.0 => String::new(),
                usd => format!(", summaries, other calls and fees ${}", fmt::usd(usd)),
            }
        )
    }

    /// Formats the table for a terminal: at most 25 lines of 80 characters.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let mut add = |text: &str| {
            for line in wrap(text, WIDTH, "  ") {
                // Writing to a string never fails.
                let _ = writeln!(out, "{line}");
            }
        };
        add(&self.heading());
        let label =
            |row: &ContentRow, indent: &str| format!("{indent}{}", row.label(LABEL - indent.len()));
        let mut rows: Vec<Vec<String>> =
            self.rows.iter().take(ROWS).map(|r| self.cells(label(r, ""), r)).collect();
        let more = self.rows.len().saturating_sub(ROWS);
        if more > 0 {
            let mut rest = self.sum();
            for r in &self.rows[..ROWS] {
                rest.peak_tokens -= r.peak_tokens;
                rest.repeated_tokens -= r.repeated_tokens;
                rest.unused_tokens -= r.unused_tokens;
                rest.first_usd -= r.first_usd;
                rest.cached_usd -= r.cached_usd;
                rest.again_usd -= r.again_usd;
            }
            rows.push(self.cells(format!("{more} more, with --out"), &rest));
        }
        rows.push(self.cells("all".into(), &self.sum()));
        rows.extend(self.files.iter().take(FILES).map(|r| self.cells(label(r, "  "), r)));
        let head = HEAD.map(String::from).to_vec();
        let lines = grid::draw(head, rows, |i| i > 0, |i| (0, u16::from(i < 7)));
        lines.iter().for_each(|line| add_line(&mut out, line));
        let mut add =
            |text: &str| wrap(text, WIDTH, "  ").iter().for_each(|l| add_line(&mut out, l));
        add(&self.dollars());
        add(EXPLAINED);
        self.notes.iter().take(2).for_each(|note| add(note));
        out
    }

    /// Writes `contents.csv` and `contents.html`.
    pub fn write(&self, files: &mut dyn Files) -> Result<(), ReportError> {
        let head = [
            "kind",
            "name",
            "adds_up",
            "parts",
            "peak_tokens",
            "repeated_tokens",
            "unused_tokens",
            "first_usd",
            "cached_usd",
            "again_usd",
        ];
        let row = |(r, adds_up): (&ContentRow, &str)| -> Vec<Cell> {
            let kind = serde_json::to_value(r.kind).expect("a kind is a word");
            vec![
                Cell::Word(kind.as_str().unwrap_or_default().into()),
                Cell::Word(r.name.clone()),
                Cell::Word(adds_up.into()),
                r.parts.cell(),
                r.peak_tokens.cell(),
                r.repeated_tokens.cell(),
                r.unused_tokens.cell(),
                Cell::Real(r.first_usd),
                Cell::Real(r.cached_usd),
                Cell::Real(r.again_usd),
            ]
        };
        let files_of_rows = self.files.iter().map(|r| (r, "no"));
        let rows = self.rows.iter().map(|r| (r, "yes")).chain(files_of_rows).map(row);
        files.put("contents.csv", &table_text(&head, rows)?)?;
        files.put("contents.html", &self.page())
    }

    fn page(&self) -> String {
        let most = self.rows.iter().map(|r| r.peak_tokens).max().unwrap_or_default().max(1);
        let bar = |r: &ContentRow| 160.0 * (r.peak_tokens as f64 / most as f64).min(1.0);
        let table = |rows: &[ContentRow], sum: Option<ContentRow>| {
            html! { div.wide tabindex="0" role="region" aria-label="Contents" { table {
                thead { tr { th {} @for h in HEAD { th scope="col" { (h) } } } }
                tbody {
                    @for r in rows { tr {
                        td { svg width="160" height="12" aria-hidden="true" {
                            rect width=(format!("{:.1}", bar(r))) height="12" fill="#4477aa" {}
                        } }
                        @for (i, cell) in self.cells(r.label(usize::MAX), r).iter().enumerate() {
                            @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    } }
                    @if let Some(sum) = &sum { tr { td {}
                        @for cell in self.cells("all".into(), sum) { td { (cell) } }
                    } }
                }
            } } }
        };
        let body = html! { main { section {
            p { (self.heading()) }
            (table(&self.rows, Some(self.sum())))
            p { (self.dollars()) }
            p { (EXPLAINED) }
            @if !self.files.is_empty() {
                h2 { "Files, which are part of the rows above" }
                (table(&self.files, None))
            }
            ul.help { @for note in &self.notes { li { (fmt::one_line(note)) } } }
        } } };
        page::document("What fills the context", &body)
    }
}

const EXPLAINED: &str = "twice: lines that another part of the prompt has, too. unused: results from \
    which no later reply repeats a word that they were the first to show.";

fn add_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}
