//! Splitting of texts into lines and sentences, and related functions.

/// A sentence or line without its list mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sentence<'a> {
    pub text: &'a str,
    /// True if it is between code fences.
    pub code: bool,
    /// True if it is an item of a list.
    pub listed: bool,
    /// True if it is a heading: `# …`, or numbered with a colon at its end.
    pub heading: bool,
}

/// Calls `f` with each piece of a text.
pub(super) fn pieces<'a>(text: &'a str, mut f: impl FnMut(Sentence<'a>)) {
    let mut code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            code = !code;
            continue;
        }
        if let Some(name) = heading(line).filter(|_| !code) {
            f(Sentence { text: name, code, listed: false, heading: true });
            continue;
        }
        let (body, listed) = if code { (line, false) } else { unlist(line) };
        if code {
            f(Sentence { text: body, code, listed, heading: false });
        } else {
            sentences(body, |s| f(Sentence { text: s, code, listed, heading: false }));
        }
    }
}

/// Returns the name in a heading line.
pub(super) fn heading(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix('#') {
        let rest = rest.trim_start_matches('#');
        return rest.strip_prefix(' ').map(str::trim).filter(|r| !r.is_empty());
    }
    let name = numbered(line)?.strip_suffix(':')?;
    (name.len() <= 60 && name.split_whitespace().count() <= 8).then_some(name)
}

/// Returns the text after `3. ` or `3) `.
pub(super) fn numbered(line: &str) -> Option<&str> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.strip_prefix(['.', ')'])?.strip_prefix(' ')?.trim_start();
    ((1..=2).contains(&digits) && !rest.is_empty()).then_some(rest)
}

/// Returns a line without its list or quotation mark, and whether it had one.
pub(super) fn unlist(line: &str) -> (&str, bool) {
    for mark in ["- ", "* ", "• ", "+ ", "> "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return (unlist(rest.trim_start()).0, true);
        }
    }
    numbered(line).map_or((line, false), |rest| (rest, true))
}

/// Calls `f` with each sentence of a line.
pub(super) fn sentences<'a>(line: &'a str, mut f: impl FnMut(&'a str)) {
    let mut from = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let end = match c {
            '。' | '！' | '？' => i + c.len_utf8(),
            '.' | '!' | '?' => {
                while let Some((_, '"' | '\'' | ')' | '*' | '`' | '”')) = chars.peek() {
                    chars.next();
                }
                let end = chars.peek().map_or(line.len(), |p| p.0);
                let rest = &line[end..];
                let next = rest.trim_start();
                let starts = next.chars().next().is_none_or(|n| !n.is_lowercase());
                if !rest.starts_with(char::is_whitespace)
                    || !starts
                    || (c == '.' && is_abbreviation(&line[from..i]))
                {
                    continue;
                }
                end
            }
            _ => continue,
        };
        push(&line[from..end], &mut f);
        from = end;
    }
    push(&line[from..], &mut f);
}

fn push<'a>(s: &'a str, f: &mut impl FnMut(&'a str)) {
    let s = s.trim();
    if s.chars().filter(|c| c.is_alphanumeric()).take(2).count() == 2 {
        f(s);
    }
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or("").trim_start_matches('(');
    word.chars().count() <= 1
        || matches!(
            word,
            "e.g" | "i.e" | "etc" | "vs" | "cf" | "Mr" | "Mrs" | "Dr" | "No" | "z.B" | "bzw"
        )
}

/// Returns a text on one line with single spaces and without tags that would close the summary.
pub(super) fn tidy(text: &str) -> String {
    const TAGS: [&str; 4] = ["<summary>", "</summary>", "<analysis>", "</analysis>"];
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    // Removing a tag can join the halves of another.
    while let Some(tag) = TAGS.iter().find(|t| out.contains(**t)) {
        out = out.replace(tag, "");
    }
    out
}

/// Shortens a text to about `most` characters, at the end of a clause or word.
pub(super) fn clip(text: &str, most: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(most) else { return text };
    let head = &text[..end];
    let clause = head.rfind([',', ';', '，', '、', '；']).filter(|&i| i > end / 2);
    let at = clause.or_else(|| head.rfind(' ').filter(|&i| i > end / 2)).unwrap_or(end);
    head[..at].trim_end_matches([',', ';', ' '])
}

/// Returns a hash of the letters and digits of a text in lower case. Sentences that differ only in
/// other characters have the same hash.
pub(super) fn fold_key(text: &str) -> u64 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for b in text.bytes().filter(|b| b.is_ascii_alphanumeric() || !b.is_ascii()) {
        h = (h ^ u64::from(b.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3);
    }
    h
}

/// Estimates o200k tokens quickly: one per four ASCII bytes or per character of another script,
/// with a little more for digits and punctuation.
pub(super) fn guess_tokens(text: &str) -> u32 {
    let (mut plain, mut odd, mut wide) = (0u32, 0u32, 0u32);
    for b in text.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b' ' => plain += 1,
            0..=0x7f => odd += 1,
            0xc0.. => wide += 1,
            _ => {}
        }
    }
    plain.div_ceil(5) + odd.div_ceil(2) + wide
}
