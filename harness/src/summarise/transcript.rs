//! Splitting of a transcript, the conversation as a single text, into segments.

use super::read::{Author, PromptSegment, user_or_other};

/// A line that announces a speaker: the author, the tool, and the start of the text on this line.
struct Marker<'a> {
    who: Author,
    tool: &'a str,
    failed: bool,
    text_at: usize,
}

/// Returns the position of the first line that names a speaker. The text must begin with such a
/// line or contain a `[User]:`.
pub(super) fn first_marker(text: &str) -> Option<usize> {
    let mut at = 0;
    let mut begun = false;
    for line in text.split_inclusive('\n') {
        let marked = marker(line).is_some();
        // A `# USER` further down may be a heading of the instruction. A bracket with a colon
        // cannot.
        if marked && (!begun || line.starts_with('[')) {
            return Some(at);
        }
        begun |= !line.trim().is_empty();
        at += line.len();
    }
    None
}

/// Splits a transcript at the markers. Text before the first marker is the user's.
pub(super) fn split<'a>(text: &'a str, out: &mut Vec<PromptSegment<'a>>) {
    let mut open: (Author, &str, bool, usize) = (Author::User, "", false, 0);
    let mut headed = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(m) = marker(line) {
            push(out, open, &text[open.3..at], headed);
            headed = line.starts_with('#');
            open = (m.who, m.tool, m.failed, at + m.text_at);
        }
        at += line.len();
    }
    push(out, open, &text[open.3..], headed);
}

fn push<'a>(
    out: &mut Vec<PromptSegment<'a>>,
    (who, tool, failed, _): (Author, &'a str, bool, usize),
    text: &'a str,
    headed: bool,
) {
    let text = text.trim();
    if text.is_empty() && tool.is_empty() {
        return;
    }
    match who {
        Author::Call if tool.is_empty() => {
            let name = text.split(['(', ' ', '{', '\n']).next().unwrap_or("");
            let arguments = text[name.len()..].trim_start_matches('(');
            out.push(PromptSegment {
                who,
                tool: name,
                text: arguments.strip_suffix(')').unwrap_or(arguments),
                failed,
            });
        }
        Author::User if headed && names_a_result(text) => {
            let failed = text.lines().next().is_some_and(|l| l.ends_with(" failed:"));
            out.push(PromptSegment { failed, ..PromptSegment::new(Author::Output, text) });
        }
        Author::User => out.push(PromptSegment::new(user_or_other(text), text)),
        Author::Assistant if headed => split_calls(text, out),
        _ => out.push(PromptSegment { who, text, tool, failed }),
    }
}

/// Returns whether a user text begins with `name:` or `name failed:`, which products without tools
/// write before a result.
fn names_a_result(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("").trim_end();
    let Some(name) = first.strip_suffix(':') else { return false };
    let name = name.strip_suffix(" failed").unwrap_or(name);
    is_tool_name(name) && text.len() > first.len()
}

fn is_tool_name(name: &str) -> bool {
    (2..=40).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Splits calls off an assistant text. Products without tools write calls as lines `name {…}`.
fn split_calls<'a>(text: &'a str, out: &mut Vec<PromptSegment<'a>>) {
    let (mut from, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if let Some((name, arguments)) =
            line.split_once(" {").filter(|(n, a)| is_tool_name(n) && a.trim_end().ends_with('}'))
        {
            if !text[from..at].trim().is_empty() {
                out.push(PromptSegment::new(Author::Assistant, &text[from..at]));
            }
            out.push(PromptSegment { tool: name, ..PromptSegment::new(Author::Call, arguments) });
            from = at + line.len();
        }
        at += line.len();
    }
    if !text[from..].trim().is_empty() {
        out.push(PromptSegment::new(Author::Assistant, &text[from..]));
    }
}

/// Parses `[User]: …`, `[Assistant tool call]: …`, or a heading line such as `# USER` or `# RESULT
/// grep`.
fn marker(line: &str) -> Option<Marker<'_>> {
    match line.as_bytes().first()? {
        b'[' => bracketed(line),
        b'#' => headed(line),
        _ => None,
    }
}

fn bracketed(line: &str) -> Option<Marker<'_>> {
    let end = line.find("]:").filter(|&e| e < 40)?;
    let who = match &line[1..end] {
        "User" | "Human" => Author::User,
        "Assistant" => Author::Assistant,
        "Assistant reasoning" | "Assistant thinking" => Author::Reasoning,
        "Assistant tool call" | "Tool call" | "Assistant tool calls" => Author::Call,
        "Tool result" | "Tool error" | "Tool output" => Author::Output,
        "Summary" | "Previous summary" => Author::Summary,
        _ => return None,
    };
    Some(Marker { who, tool: "", failed: &line[1..end] == "Tool error", text_at: end + 2 })
}

fn headed(line: &str) -> Option<Marker<'_>> {
    let rest = line.strip_prefix("# ")?.trim_end();
    let (word, tool) = rest.split_once(' ').unwrap_or((rest, ""));
    let who = match word {
        "USER" | "HUMAN" => Author::User,
        "ASSISTANT" => Author::Assistant,
        "CALL" => Author::Call,
        "RESULT" | "TOOL" => Author::Output,
        _ => return None,
    };
    let fits = if matches!(who, Author::Call | Author::Output) {
        tool.is_empty() || is_tool_name(tool)
    } else {
        tool.is_empty()
    };
    fits.then_some(Marker { who, tool, failed: false, text_at: line.len() })
}
