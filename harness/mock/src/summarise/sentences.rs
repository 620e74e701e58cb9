//! Sentences of a text, and their literals.

/// Returns the sentences of a text, without marks of lists and headings.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let marks = |c: char| matches!(c, '-' | '*' | '#' | '>' | '•' | '+') || c.is_whitespace();
        let mut rest = line.trim_start_matches(marks).trim_end();
        std::iter::from_fn(move || {
            let (sentence, after) = rest.split_at(first_sentence(rest));
            rest = after.trim_start();
            (!sentence.is_empty()).then_some(sentence)
        })
    })
}

/// Returns the length of the first sentence of a line: to a full stop of a script without spaces,
/// or to a mark before a space and no lower-case letter.
fn first_sentence(line: &str) -> usize {
    let mut chars = line.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '。' | '！' | '？' => return i + c.len_utf8(),
            '.' | '!' | '?' => {
                while chars
                    .next_if(|(_, c)| matches!(c, '"' | '\'' | ')' | '*' | '`' | '”'))
                    .is_some()
                {}
                let end = chars.peek().map_or(line.len(), |(end, _)| *end);
                let next = line[end..].trim_start();
                let initial = line[..i].rsplit([' ', '(']).next().is_some_and(|w| w.len() < 2);
                let starts = next.chars().next().is_some_and(|n| !n.is_lowercase());
                if line[end..].starts_with(' ') && starts && !initial {
                    return end;
                }
            }
            _ => {}
        }
    }
    line.len()
}

/// Counts the kinds of literals in a text, from 0 to 3: paths, names and numbers.
pub(super) fn literals(text: &str) -> usize {
    let (mut path, mut name, mut number) = (false, false, false);
    let is_plain = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase());
    for word in text.split_ascii_whitespace().filter(|word| !is_plain(word)) {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '`');
        let inside = |mark: char| {
            word.split_once(mark).is_some_and(|(a, b)| {
                a.ends_with(char::is_alphanumeric) && b.starts_with(char::is_alphanumeric)
            })
        };
        path |= word.len() > 5 && inside('/')
            || inside('.') && !word.ends_with(|c: char| c.is_ascii_digit());
        name |= word.contains('`') || inside('_') || is_mixed(word);
        number |= word.bytes().filter(u8::is_ascii_digit).count() >= 2;
    }
    [path, name, number].into_iter().filter(|found| *found).count()
}

/// Returns whether a capital follows a small letter, as in `parseText`.
fn is_mixed(word: &str) -> bool {
    word.as_bytes().windows(2).any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase())
}

/// Length at which a sentence is cut, characters.
const LONGEST: usize = 320;

/// Shortens a sentence to [`LONGEST`], at the end of a clause or word.
pub(super) fn clip(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(LONGEST) else { return text };
    let head = &text[..end];
    let at = [&[',', ';', '，', '、', '；'][..], &[' ']]
        .iter()
        .find_map(|marks| head.rfind(*marks).filter(|&i| i > end / 2))
        .unwrap_or(end);
    head[..at].trim_end_matches([',', ';', ' '])
}

/// Returns a text on one line with single spaces and without tags that would close the summary.
pub(super) fn on_one_line(text: &str) -> String {
    const TAGS: [&str; 4] = ["<summary>", "</summary>", "<analysis>", "</analysis>"];
    let mut out = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Removing a tag can join the halves of another.
    while let Some(tag) = TAGS.iter().find(|tag| out.contains(**tag)) {
        out = out.replace(tag, "");
    }
    out
}
