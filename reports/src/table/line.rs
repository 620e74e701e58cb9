//! Lines of the table, and their display in a terminal.

use crate::front::MARK;

#[derive(Clone, Copy)]
pub(super) enum Style {
    Heading,
    Alarm,
    Score,
    Faint,
}

/// Text for a terminal of a width.
pub(super) struct Lines {
    pub(super) text: String,
    pub(super) width: usize,
    /// True for ANSI colours.
    pub(super) color: bool,
}

impl Lines {
    pub(super) fn add(&mut self, style: Style, text: &str) {
        let colored = |code: &str, text: &str| format!("\u{1b}[{code}m{text}\u{1b}[0m");
        self.text += &match style {
            _ if !self.color => text.to_string(),
            Style::Heading => colored("1", text),
            Style::Alarm => colored("31", text),
            Style::Faint => colored("2", text),
            Style::Score => text
                .replace("BETTER", &colored("32", "BETTER"))
                .replace("WORSE", &colored("31", "WORSE"))
                .replace(MARK, &colored("32", MARK)),
        };
        self.text.push('\n');
    }

    /// Adds a text that is wrapped; `indent` is that of the further lines.
    pub(super) fn wrap(&mut self, style: Style, text: &str, indent: &str) {
        wrap(text, self.width, indent).iter().for_each(|line| self.add(style, line));
    }

    pub(super) fn add_blank(&mut self) {
        self.text.push('\n');
    }
}

pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![lead];
    // A number stays with its sign.
    for word in text.replace(" %", "\u{a0}%").split_ascii_whitespace() {
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
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrap_keeps_a_number_with_its_sign() {
        assert_eq!(wrap("cost +43.2 %, recall", 12, "  "), ["cost", "  +43.2 %,", "  recall"]);
    }
}
