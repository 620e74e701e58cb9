//! Classifies texts by kind of content and counts their tokens.

use ctxbench_core::tokens::o200k;
use serde::Serialize;

/// Kind of content for the comparison of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// Text of the user and the model, including thinking.
    Prose,
    /// Program source code.
    Code,
    /// JSON, such as arguments of tool calls and structured results.
    Json,
    /// Other output of tools.
    ToolOutput,
    /// Text with at least a fifth of its letters not Latin.
    NonLatin,
}

impl ContentKind {
    /// All kinds in the order of the tables.
    pub const ALL: [ContentKind; 5] = [
        ContentKind::Prose,
        ContentKind::Code,
        ContentKind::Json,
        ContentKind::ToolOutput,
        ContentKind::NonLatin,
    ];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            ContentKind::Prose => "prose",
            ContentKind::Code => "code",
            ContentKind::Json => "json",
            ContentKind::ToolOutput => "tool output",
            ContentKind::NonLatin => "non-latin",
        }
    }
}

/// Our o200k counts by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentCounts {
    /// Tokens per kind, in the order of [`ContentKind::ALL`].
    pub tokens: [u64; 5],
    /// Number of parts that cannot be counted, such as images and encrypted reasoning.
    pub unknown: usize,
}

impl ContentCounts {
    /// Adds the counts of `o`.
    pub fn add(&mut self, o: &ContentCounts) {
        self.tokens.iter_mut().zip(o.tokens).for_each(|(a, b)| *a += b);
        self.unknown += o.unknown;
    }

    /// Returns the sum over all kinds.
    pub fn total(&self) -> u64 {
        self.tokens.iter().sum()
    }

    /// Counts a text that the user or the model wrote.
    pub fn words(&mut self, text: &str) {
        self.text(text, ContentKind::Prose);
    }

    /// Counts the arguments of a tool call and the tool's name.
    pub fn call(&mut self, name: &str, arguments: &str) {
        let kind = if is_foreign(arguments) { ContentKind::NonLatin } else { ContentKind::Json };
        self.tokens[kind as usize] += o200k(name) + o200k(arguments);
    }

    /// Counts the output of a tool.
    pub fn output(&mut self, text: &str) {
        self.text(text, ContentKind::ToolOutput);
    }

    fn text(&mut self, text: &str, otherwise: ContentKind) {
        let kind = if is_foreign(text) {
            ContentKind::NonLatin
        } else if is_json(text) {
            ContentKind::Json
        } else if is_code(text) {
            ContentKind::Code
        } else {
            otherwise
        };
        self.tokens[kind as usize] += o200k(text);
    }
}

fn is_foreign(text: &str) -> bool {
    let (mut letters, mut foreign) = (0usize, 0usize);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        foreign += usize::from(c > '\u{24f}');
    }
    foreign * 5 >= letters && foreign > 0
}

fn is_json(text: &str) -> bool {
    let t = text.trim();
    let wrapped =
        (t.starts_with('{') && t.ends_with('}')) || (t.starts_with('[') && t.ends_with(']'));
    wrapped && serde_json::from_str::<serde::de::IgnoredAny>(t).is_ok()
}

/// Returns whether at least a third of the lines look like code: they end in `{`, `}`, `;`, `(`,
/// `)`, `,`, `:` or ` do`, or begin with a keyword or a comment sign. Line numbers in front, as
/// added by tools that read files, are ignored.
fn is_code(text: &str) -> bool {
    const STARTS: [&str; 22] = [
        "def ",
        "fn ",
        "pub ",
        "let ",
        "const ",
        "import ",
        "from ",
        "class ",
        "function ",
        "return ",
        "if ",
        "for ",
        "use ",
        "end",
        "//",
        "#",
        "/*",
        "*",
        "@",
        "<",
        "}",
        "export ",
    ];
    let (mut lines, mut code) = (0usize, 0usize);
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let line = line.trim_start_matches(['→', '\t', '|', ':']).trim();
        if line.is_empty() {
            continue;
        }
        lines += 1;
        let ends = line.ends_with(['{', '}', ';', '(', ')', ',']) || line.ends_with(" do");
        code += usize::from(ends || STARTS.iter().any(|s| line.starts_with(s)));
    }
    lines >= 3 && code * 3 >= lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(f: impl Fn(&mut ContentCounts)) -> ContentKind {
        let mut c = ContentCounts::default();
        f(&mut c);
        let found: Vec<ContentKind> =
            ContentKind::ALL.into_iter().filter(|k| c.tokens[*k as usize] > 0).collect();
        assert_eq!(found.len(), 1);
        found[0]
    }

    #[test]
    fn texts_are_told_apart() {
        assert_eq!(
            kind_of(|c| c.words("Please look at the parser, it drops the last line.")),
            ContentKind::Prose
        );
        assert_eq!(
            kind_of(|c| c.words("请看一下解析器，它丢掉了最后一行。")),
            ContentKind::NonLatin
        );
        assert_eq!(
            kind_of(|c| c.output("     1→fn main() {\n     2→    run();\n     3→}\n")),
            ContentKind::Code
        );
        assert_eq!(
            kind_of(|c| c.output("3 passed\n1 failed in the last run\nsee the log")),
            ContentKind::ToolOutput
        );
        assert_eq!(kind_of(|c| c.output("{\"a\": [1, 2]}")), ContentKind::Json);
        assert_eq!(kind_of(|c| c.call("read", "{\"path\":\"a.rs\"}")), ContentKind::Json);
        // A single accented word does not count as a foreign text.
        assert_eq!(
            kind_of(|c| c.words("The café and the naïve façade are fine terms.")),
            ContentKind::Prose
        );
    }
}
