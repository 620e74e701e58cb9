//! Contents of the prompts of a recorded session and their cost: a table and `contents.csv`.

use serde::Serialize;

use crate::csv::table_text;
use crate::error::ReportError;
use crate::metrics::{Cell, ToCell};
use crate::record::word;
use crate::stored::Files;
use crate::table::wrap;
use crate::{fmt, grid};

/// Kind of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    #[default]
    SystemPrompt,
    ToolDefinitions,
    MemoryFile,
    File,
    UserMessages,
    /// Text that the program added to messages.
    ProgramNotices,
    Replies,
    Reasoning,
    Tool,
    McpServer,
    Skill,
    Subagent,
    Summary,
    /// Text that the provider counted and the recording lacks.
    NotInTheFile,
}

/// Tokens at the largest prompt, and dollars over the session, of content of one kind and name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
        ContentRow { kind, name: name.to_string(), ..ContentRow::default() }
    }

    /// Returns the sum of rows.
    fn sum(rows: &[ContentRow]) -> ContentRow {
        let mut all = ContentRow::default();
        for row in rows {
            all.peak_tokens += row.peak_tokens;
            all.repeated_tokens += row.repeated_tokens;
            all.unused_tokens += row.unused_tokens;
            all.first_usd += row.first_usd;
            all.cached_usd += row.cached_usd;
            all.again_usd += row.again_usd;
        }
        all
    }

    pub fn usd(&self) -> f64 {
        self.first_usd + self.cached_usd + self.again_usd
    }

    /// Returns kind and name in at most `max` characters. Of a path, the end stays.
    fn label(&self, max: usize) -> String {
        let name = fmt::one_line(&self.name);
        let kind = word(&self.kind).replace('_', " ");
        let room = max.saturating_sub(kind.chars().count() + 1).max(3);
        let length = name.chars().count();
        match name.contains('/') && length > room {
            _ if name.is_empty() => kind,
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
        let mut out = wrap(&self.heading(), WIDTH, "  ");
        let label =
            |row: &ContentRow, indent: &str| format!("{indent}{}", row.label(LABEL - indent.len()));
        let mut rows: Vec<Vec<String>> =
            self.rows.iter().take(ROWS).map(|r| self.cells(label(r, ""), r)).collect();
        if let Some(more @ [_, ..]) = self.rows.get(ROWS..) {
            rows.push(
                self.cells(format!("{} more, with --out", more.len()), &ContentRow::sum(more)),
            );
        }
        rows.push(self.cells("all".into(), &ContentRow::sum(&self.rows)));
        rows.extend(self.files.iter().take(FILES).map(|r| self.cells(label(r, "  "), r)));
        let head = HEAD.map(String::from).to_vec();
        out.extend(grid::draw(head, rows, |i| i > 0, |i| (0, u16::from(i < 7))));
        let dollars = self.dollars();
        let notes = self.notes.iter().take(2).map(String::as_str);
        let texts = [dollars.as_str(), EXPLAINED].into_iter().chain(notes);
        out.extend(texts.flat_map(|text| wrap(text, WIDTH, "  ")));
        out.join("\n") + "\n"
    }

    /// Writes `contents.csv`.
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
            vec![
                Cell::Word(word(&r.kind)),
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
        files.put("contents.csv", &table_text(&head, rows)?)
    }
}

const EXPLAINED: &str = "twice: lines that another part of the prompt has, too. unused: results from \
    which no later reply repeats a word that they were the first to show.";
