//! Literals with exact knowledge: paths, numbers and identifiers of eight or more characters, and
//! quoted sentences.

/// Minimum length of a literal, characters.
pub(super) const SHORTEST: usize = 8;

/// Maximum length of a literal, bytes. Longer ones are keys, hashes of bundles or encoded data.
const LONGEST: usize = 200;

/// Length of a quoted sentence in bytes.
const SENTENCE: std::ops::RangeInclusive<usize> = 12..=120;

/// Calls `found` with the position and the text of each literal, including repetitions.
pub(super) fn for_each<'a>(text: &'a str, mut found: impl FnMut(usize, &'a str)) {
    quoted(text, &mut found);
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let start = i;
        while i < bytes.len() && in_word(bytes, i) {
            i += 1;
        }
        if i >= start + SHORTEST {
            let (skipped, word) = trimmed(&text[start..i]);
            if (SHORTEST..=LONGEST).contains(&word.len())
                && (is_path(word) || is_number(word) || is_identifier(word))
            {
                found(start + skipped, word);
            }
        }
        i += 1;
    }
}

/// Returns whether the byte at `i` belongs to a word. All such bytes are ASCII, so a word ends at a
/// character boundary.
fn in_word(bytes: &[u8], i: usize) -> bool {
    match bytes[i] {
        b'.' | b'/' | b'_' | b'-' | b'~' | b'@' => true,
        b':' => bytes.get(i + 1) == Some(&b':') || i > 0 && bytes[i - 1] == b':',
        b => b.is_ascii_alphanumeric(),
    }
}

/// Returns a word without surrounding punctuation, and the number of bytes removed from its start.
fn trimmed(word: &str) -> (usize, &str) {
    let open = word.trim_end_matches(['.', '-', '/', '@', '~', ':']);
    let inner = open.trim_start_matches(['-', ':', '@']);
    let inner = inner.strip_prefix("./").unwrap_or(inner);
    let inner = if inner.starts_with("../") { inner } else { inner.trim_start_matches('.') };
    (open.len() - inner.len(), inner)
}

/// Finds sentences between double quotes, such as texts of a user interface and error messages.
fn quoted<'a>(text: &'a str, found: &mut impl FnMut(usize, &'a str)) {
    let mut open: Option<usize> = None;
    for (at, c) in text.match_indices(['"', '\n']) {
        open = match open {
            _ if c == "\n" => None,
            Some(start) if is_sentence(&text[start..at]) => {
                found(start, &text[start..at]);
                None
            }
            _ => Some(at + 1),
        };
    }
}

fn is_sentence(text: &str) -> bool {
    let second = text.split(' ').nth(1);
    SENTENCE.contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && second.is_some_and(|w| w.starts_with(|c: char| c.is_ascii_lowercase()))
        && text.matches(' ').count() >= 2
        && text.chars().all(|c| c.is_alphanumeric() || " ,.;:'’!?()/-".contains(c))
}

/// Extensions that distinguish a bare file name from `object.member`.
const EXTENSIONS: &[&str] = &[
    "bash", "bat", "c", "cc", "cfg", "cjs", "conf", "cpp", "cs", "css", "csv", "cts", "diff",
    "eex", "env", "erl", "ex", "exs", "go", "gradle", "graphql", "h", "hcl", "heex", "hpp", "hs",
    "htm", "html", "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "less", "lock",
    "log", "lua", "md", "mdx", "mjs", "ml", "mts", "patch", "pdf", "php", "pl", "png", "proto",
    "ps1", "py", "pyi", "r", "rb", "rs", "rst", "scala", "scss", "sh", "snap", "sql", "sqlite",
    "svelte", "svg", "swift", "tf", "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig",
    "zip",
];

/// Returns whether a literal is a path: a file name with a known extension, or a text with slashes
/// that begins at a root (`/`, `~`, `..`) or has at least three parts, so that `and/or` is not a
/// path.
pub(super) fn is_path(word: &str) -> bool {
    let bytes = word.as_bytes();
    if !word.contains(['.', '/'])
        || word.contains(' ')
        || word.starts_with("/dev/")
        || bytes.windows(2).any(|two| matches!(two, b"//" | b"::"))
    {
        return false;
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    if name
        .rsplit_once('.')
        .is_some_and(|(stem, ext)| !stem.is_empty() && EXTENSIONS.binary_search(&ext).is_ok())
    {
        return true;
    }
    let parts = word.split('/').filter(|p| p.bytes().any(|b| b.is_ascii_alphanumeric())).count();
    word.contains('/') && (parts > 2 || parts == 2 && word.starts_with(['/', '~', '.']))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'))
        && word.bytes().any(|b| b.is_ascii_digit())
}

/// Returns whether a literal is an identifier and not prose, such as `1-indexed`: it contains an
/// underscore, a digit, `::`, or a capital after a small letter.
fn is_identifier(word: &str) -> bool {
    let b = word.as_bytes();
    let counted = word.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix('-');
    let is_counted = counted.is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_lowercase()));
    if word.contains('/') || is_counted || !b.iter().any(u8::is_ascii_alphabetic) {
        return false;
    }
    b.windows(2).any(|w| w == b"::" || w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase())
        || b.iter().any(|c| *c == b'_' || c.is_ascii_digit())
}

/// Returns a literal and, if it is a path, its ends after each slash, longest first. The agent may
/// name a file relative to a different folder than the tool did.
pub(super) fn forms(word: &str) -> impl Iterator<Item = &str> {
    let ends = if is_path(word) {
        word.match_indices('/').map(|(i, _)| i + 1).collect()
    } else {
        Vec::new()
    };
    std::iter::once(word)
        .chain(ends.into_iter().map(|i| &word[i..]).filter(|w| w.len() >= SHORTEST && is_path(w)))
}

/// Returns the folders of a path, longest first.
pub(super) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(i, _)| &path[..i]).filter(|f| f.len() >= SHORTEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        for_each(text, |at, w| {
            assert_eq!(&text[at..at + w.len()], w);
            out.push(w);
        });
        out
    }

    #[test]
    fn quoted_sentences_are_words() {
        let text =
            "label=\"No transcript available yet.\" class=\"a b c\" id=\"x\"\n\"Not\n closed\"";
        assert_eq!(words(text), ["No transcript available yet."]);
        assert!(!is_path("No transcript or log.txt"));
    }

    #[test]
    fn paths_numbers_and_identifiers_are_words() {
        let text = "In ./src/auth/login.ts:42, parse_token::run failed; userSession 20260108 and \
            1_234_567 (see `README.md`).";
        let expected = [
            "src/auth/login.ts",
            "parse_token::run",
            "userSession",
            "20260108",
            "1_234_567",
            "README.md",
        ];
        assert_eq!(words(text), expected);
        assert_eq!(words("/etc/app/config.yaml."), ["/etc/app/config.yaml"]);
        assert_eq!(words("naïve→fn_with_name→x"), ["fn_with_name"]);
    }

    #[test]
    fn prose_and_rulers_are_no_words() {
        assert_eq!(
            words(
                "Something important, well-known and/or before/after understood, this.value... \
                 https://example.org ======== -------- 1-indexed 2>/dev/null"
            ),
            [] as [&str; 0]
        );
    }

    #[test]
    fn extensions_are_sorted() {
        assert!(EXTENSIONS.is_sorted());
    }

    #[test]
    fn a_path_has_its_ends_as_forms() {
        assert_eq!(
            forms("/home/me/src/auth.ts").collect::<Vec<_>>(),
            ["/home/me/src/auth.ts", "home/me/src/auth.ts", "me/src/auth.ts", "src/auth.ts"]
        );
        assert_eq!(forms("parse_token").collect::<Vec<_>>(), ["parse_token"]);
    }
}
