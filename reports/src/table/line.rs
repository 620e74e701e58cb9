//! Lines of the table, and their display in a terminal.

pub(super) enum TableLine {
    Heading(String),
    Alarm(String),
    Score(String),
    Verdicts(String),
    Faint(String),
}

pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![lead];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        let fresh = last.trim().is_empty();
        if !fresh && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{indent}{word}"));
        } else {
            if !fresh {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

pub(super) fn push(out: &mut String, line: &TableLine, color: bool) {
    let (code, text) = match line {
        TableLine::Heading(t) => ("1", t),
        TableLine::Alarm(t) => ("31", t),
        TableLine::Faint(t) => ("2", t),
        TableLine::Score(t) | TableLine::Verdicts(t) => ("", t),
    };
    if !color {
        out.push_str(text);
    } else if matches!(line, TableLine::Verdicts(_)) {
        out.push_str(
            &text
                .replace("BETTER", "\u{1b}[32mBETTER\u{1b}[0m")
                .replace("WORSE", "\u{1b}[31mWORSE\u{1b}[0m"),
        );
    } else if code.is_empty() {
        out.push_str(&green_best(text));
    } else {
        out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m"));
    }
    out.push('\n');
}

/// Colours figures that have the mark of the best value.
fn green_best(text: &str) -> String {
    text.split(' ')
        .map(|w| match w.strip_suffix('*') {
            Some(n) if n.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                format!("\u{1b}[32m{w}\u{1b}[0m")
            }
            _ => w.to_string(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}
