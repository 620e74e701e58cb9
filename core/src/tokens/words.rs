//! Splits text into words like the regular expressions of the vocabularies (tiktoken-rs 0.12.1,
//! `openai_public.rs`), without a regex engine.
//!
//! An expression is a list of alternatives, and the first match wins. Each function below is such a
//! list in order; comments give the result where an alternative backtracks.

use super::Encoding;
use super::classes::Class;

/// Splits a text into words. Joined, they are the text.
pub(super) fn words(encoding: Encoding, text: &str) -> impl Iterator<Item = &str> {
    let word = match encoding {
        Encoding::O200k => o200k,
        Encoding::Cl100k => cl100k,
    };
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let from = start;
            start = word(text, from);
            &text[from..start]
        })
    })
}

/// Returns the end of the word at `from`, which is before the end of the text.
fn o200k(text: &str, from: usize) -> usize {
    let Some((first, len)) = Class::at(text, from) else { return text.len() };
    // [^\r\n\p{L}\p{N}]? then letters, then (?i:'s|'t|'re|'ve|'m|'ll|'d)?
    let led = first.leads().then_some(from + len);
    let lower = led.and_then(|at| lower_ended(text, at)).or_else(|| lower_ended(text, from));
    let upper = || led.and_then(|at| upper_begun(text, at)).or_else(|| upper_begun(text, from));
    if let Some(end) = lower.or_else(upper) {
        return end + contraction(text, end);
    }
    match first {
        // \p{N}{1,3}
        Class::Number => up_to_three(text, from),
        // ` ?[^\s\p{L}\p{N}]+[\r\n/]*`
        _ => signs(text, from, |b| matches!(b, b'\r' | b'\n' | b'/'))
            // \s*[\r\n]+|\s+(?!\S)|\s+
            .unwrap_or_else(|| blanks(text, from).o200k()),
    }
}

/// Matches `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`.
fn lower_ended(text: &str, from: usize) -> Option<usize> {
    let (mut at, mut both) = (from, None);
    while let Some((class, len)) = Class::at(text, at).filter(|(c, _)| c.is_upper()) {
        at += len;
        both = if class == Class::Upper { both } else { Some(at) };
    }
    match Class::at(text, at) {
        Some((Class::Lower, len)) => Some(run(text, at + len, Class::is_lower)),
        // Without a following lower-case letter, the word ends after the last caseless one.
        _ => both,
    }
}

/// Matches `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`.
fn upper_begun(text: &str, from: usize) -> Option<usize> {
    let end = run(text, from, Class::is_upper);
    (end > from).then(|| run(text, end, Class::is_lower))
}

/// Returns the length of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` in any case, or 0.
fn contraction(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    if rest.first() != Some(&b'\'') {
        return 0;
    }
    let letter = |i: usize| rest.get(i).map(u8::to_ascii_lowercase);
    match (letter(1), letter(2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => 2,
        (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) => 3,
        // The long s, which folds to s.
        _ if rest[1..].starts_with("ſ".as_bytes()) => 1 + 'ſ'.len_utf8(),
        _ => 0,
    }
}

/// Returns the end of the word at `from`, which is before the end of the text.
fn cl100k(text: &str, from: usize) -> usize {
    // '(?i:[sdmt]|ll|ve|re)
    let short = contraction(text, from);
    if short > 0 {
        return from + short;
    }
    let Some((first, len)) = Class::at(text, from) else { return text.len() };
    // [^\r\n\p{L}\p{N}]?+\p{L}++, which gives nothing back
    let letters = if first.leads() { from + len } else { from };
    let end = run(text, letters, Class::is_letter);
    if end > letters {
        return end;
    }
    match first {
        // \p{N}{1,3}+
        Class::Number => up_to_three(text, from),
        // ` ?[^\s\p{L}\p{N}]++[\r\n]*+`
        _ => signs(text, from, |b| matches!(b, b'\r' | b'\n'))
            // \s++$|\s*[\r\n]|\s+(?!\S)|\s
            .unwrap_or_else(|| blanks(text, from).cl100k(text)),
    }
}

/// Returns the end of a run of characters.
#[inline]
fn run(text: &str, from: usize, of: impl Fn(Class) -> bool) -> usize {
    let mut at = from;
    while let Some((_, len)) = Class::at(text, at).filter(|(class, _)| of(*class)) {
        at += len;
    }
    at
}

fn up_to_three(text: &str, from: usize) -> usize {
    let mut at = from;
    for _ in 0..3 {
        match Class::at(text, at) {
            Some((Class::Number, len)) => at += len,
            _ => break,
        }
    }
    at
}

/// ` ?[^\s\p{L}\p{N}]+`, then bytes that may follow.
fn signs(text: &str, from: usize, follows: impl Fn(u8) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let start = from + usize::from(bytes[from] == b' ');
    let end = run(text, start, Class::is_sign);
    let follow = bytes[end..].iter().take_while(|&&b| follows(b)).count();
    (end > start).then_some(end + follow)
}

/// A run of white space.
struct Blanks {
    /// Start of the last character.
    last: usize,
    end: usize,
    /// End of the last line break.
    line: Option<usize>,
    /// Whether the run is a single character.
    single: bool,
    /// Whether more text follows the run.
    followed: bool,
}

fn blanks(text: &str, from: usize) -> Blanks {
    let (mut at, mut last, mut line) = (from, from, None);
    while let Some((class, len)) = Class::at(text, at).filter(|(class, _)| class.is_space()) {
        last = at;
        at += len;
        line = if class == Class::Newline { Some(at) } else { line };
    }
    Blanks { last, end: at, line, single: last == from, followed: at < text.len() }
}

impl Blanks {
    /// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line break, else without the last blank, which belongs
    /// to the next word.
    fn o200k(&self) -> usize {
        match self.line {
            Some(line) => line,
            None if self.followed && !self.single => self.last,
            None => self.end,
        }
    }

    /// `\s++$|\s*[\r\n]|\s+(?!\S)|\s`: like [`Blanks::o200k`], but the whole run at the end of a text.
    fn cl100k(&self, text: &str) -> usize {
        if self.end == text.len() { self.end } else { self.o200k() }
    }
}
