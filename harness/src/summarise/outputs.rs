//! Lines of a tool result that a summary would mention: errors, totals, values. Real summaries
//! hardly ever copy the rest.

use super::cues::{self, Cue, Cues};

/// Maximum number of lines of a result.
const MAX_OUTPUTS: usize = 3;
/// Maximum if the summary must focus on values or errors, which outputs contain.
const MAX_FOCUSED: usize = 12;

/// A line with its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeighedLine<'a> {
    pub text: &'a str,
    /// Weight of the line.
    pub score: f32,
    pub cues: Cues,
}

/// Returns the best lines of a result in their order: at most three, or twelve with `asked`.
pub(super) fn best_lines(text: &str, failed: bool, asked: bool) -> Vec<WeighedLine<'_>> {
    let most = if asked { MAX_FOCUSED } else { MAX_OUTPUTS };
    let mut best: Vec<(usize, WeighedLine<'_>)> = Vec::with_capacity(most + 1);
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some(mut found) = weigh(line) else { continue };
        if failed && best.is_empty() {
            found.score += 0.6;
        }
        if best.len() == most && best.iter().all(|(_, b)| b.score >= found.score) {
            continue;
        }
        best.push((n, found));
        if best.len() > most {
            let worst = (0..best.len())
                .min_by(|&a, &b| best[a].1.score.total_cmp(&best[b].1.score))
                .unwrap_or(0);
            best.remove(worst);
        }
    }
    best.into_iter().map(|(_, l)| l).collect()
}

fn weigh(line: &str) -> Option<WeighedLine<'_>> {
    if line.len() < 6 || line.len() > 400 || is_code(line) || is_noise(line) {
        return None;
    }
    let c = cues::parse(line);
    let mut score: f32 = 0.0;
    if c.has(Cue::Error) && (c.has(Cue::Number) || !c.has(Cue::NoCues)) {
        score += 1.6;
    }
    if c.has(Cue::Compared) {
        score += 1.0;
    }
    if c.has(Cue::Total) && line.bytes().any(|b| b.is_ascii_digit()) {
        score += 1.0;
    }
    if c.has(Cue::Number) {
        score += 0.35;
    }
    if c.has(Cue::Name) || c.has(Cue::Path) {
        score += 0.25;
    }
    // Confirmation of an edit. The list of files contains it already.
    if c.has(Cue::Done) && c.has(Cue::Path) && !c.has(Cue::Error) {
        score -= 0.8;
    }
    if line.len() > 200 {
        score -= 0.3;
    }
    (score >= 0.3).then_some(WeighedLine { text: line, score, cues: c })
}

/// Returns whether a line is source code: it is numbered, or begins or ends like a statement.
fn is_code(line: &str) -> bool {
    const BEGINS: [&str; 18] = [
        "import ", "export ", "const ", "let ", "var ", "fn ", "pub ", "def ", "class ", "return",
        "//", "/*", "* ", "#include", "if (", "} ", "throw ", "async ",
    ];
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    let numbered = digits > 0
        && (rest.starts_with(['\t', '|', '→'])
            || rest.starts_with("  ")
            || rest.starts_with(" |")
            || rest.starts_with(": "));
    let ends = line.ends_with(['{', '}', ';', '(', ',', '[']) || line.ends_with("=>");
    // Hit of a search: `path:12:text`.
    let hit = line
        .split(':')
        .nth(1)
        .is_some_and(|n| !n.is_empty() && n.len() < 6 && n.bytes().all(|b| b.is_ascii_digit()))
        && line.contains('.');
    numbered || ends || hit || BEGINS.iter().any(|b| line.starts_with(b))
}

/// Returns whether a line has no information: stack frames, carets, rules, placeholders, passed
/// tests.
fn is_noise(line: &str) -> bool {
    let letters = line.bytes().filter(|b| b.is_ascii_alphanumeric() || !b.is_ascii()).count();
    line.starts_with("at ")
        || line.starts_with(['✓', '✔', '√'])
        || (line.starts_with('[') && line.ends_with(']'))
        || letters * 2 < line.len()
}
