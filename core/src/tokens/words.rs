//! Splits text into words like the regular expressions of the vocabularies (tiktoken-rs 0.12.1,
//! `openai_public.rs`), without a regex engine.
//!
//! An expression is a list of alternatives, and the first match wins. [`o200k`] and [`cl100k`] are
//! these lists in order; comments give the result where an alternative backtracks.

use super::Encoding;
use super::classes::Class;

/// Splits a text into words. Joined, they are the text.
pub(super) fn words(text: &str, encoding: Encoding) -> impl Iterator<Item = &str> {
    let mut start = 0;
    std::iter::from_fn(move || {
        (start < text.len()).then(|| {
            let from = start;
            start = match encoding {
                Encoding::O200k => o200k(text, from),
                Encoding::Cl100k => cl100k(text, from),
            };
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
        _ => signs(text, from, b"\r\n/").unwrap_or_else(|| blanks(text, from)),
    }
}

/// Returns the end of the word at `from`, which is before the end of the text.
fn cl100k(text: &str, from: usize) -> usize {
    let Some((first, len)) = Class::at(text, from) else { return text.len() };
    let short = from + contraction(text, from);
    let start = if first.leads() { from + len } else { from };
    let letters = run(text, start, Class::is_letter);
    let blank = run(text, from, Class::is_space);
    match first {
        _ if short > from => short,
        // [^\r\n\p{L}\p{N}]?+\p{L}++
        _ if letters > start => letters,
        // \p{N}{1,3}+
        Class::Number => up_to_three(text, from),
        // \s++$
        _ if blank == text.len() => blank,
        // ` ?[^\s\p{L}\p{N}]++[\r\n]*+`, then `\s*[\r\n]|\s+(?!\S)|\s`
        _ => signs(text, from, b"\r\n").unwrap_or_else(|| blanks(text, from)),
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

/// Returns the end of a run of characters.
#[inline]
fn run(text: &str, from: usize, mut matches: impl FnMut(Class) -> bool) -> usize {
    let mut at = from;
    while let Some((_, len)) = Class::at(text, at).filter(|(class, _)| matches(*class)) {
        at += len;
    }
    at
}

fn up_to_three(text: &str, from: usize) -> usize {
    let mut left = 0..3;
    run(text, from, |class| class == Class::Number && left.next().is_some())
}

/// ` ?[^\s\p{L}\p{N}]+`, then any of `follow`.
fn signs(text: &str, from: usize, follow: &[u8]) -> Option<usize> {
    let bytes = text.as_bytes();
    let start = from + usize::from(bytes[from] == b' ');
    let end = run(text, start, Class::is_sign);
    let followed = bytes[end..].iter().take_while(|b| follow.contains(b)).count();
    (end > start).then_some(end + followed)
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line break, else without the last blank, which belongs
/// to the next word.
fn blanks(text: &str, from: usize) -> usize {
    let (mut at, mut last, mut line) = (from, from, None);
    while let Some((class, len)) = Class::at(text, at).filter(|(class, _)| class.is_space()) {
        last = at;
        at += len;
        line = if class == Class::Newline { Some(at) } else { line };
    }
    match line {
        Some(line) => line,
        None if at < text.len() && last > from => last,
        None => at,
    }
}
