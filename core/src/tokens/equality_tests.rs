//! Compares counts and splits with tiktoken: on random text of every script, on the text of this
//! repository, and on special cases of its regular expressions.

use std::path::Path;

use proptest::prelude::*;

use super::words::words;
use super::{Encoding, seen};

fn difference(text: &str) -> Option<String> {
    let o200k: Vec<&str> = words(text, Encoding::O200k).collect();
    let cl100k: Vec<&str> = words(text, Encoding::Cl100k).collect();
    let both = [
        (Encoding::O200k, tiktoken_rs::o200k_base_singleton(), o200k),
        (Encoding::Cl100k, tiktoken_rs::cl100k_base_singleton(), cl100k),
    ];
    both.into_iter().find_map(|(of, theirs, cut)| {
        let (ours, theirs) = (seen::count(text, of), theirs.encode_ordinary(text).len() as u64);
        let differs = ours != theirs || cut.concat() != text;
        differs.then(|| format!("{of:?}: {ours} for {theirs}, cut as {cut:?}"))
    })
}

/// Compares a long text in groups of lines, so that a reported difference is small.
fn by_lines(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.chunks(40).find_map(|some| difference(&some.concat()))
}

#[test]
fn what_the_expressions_treat_in_a_way_of_their_own() {
    let blanks = [" ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{2028}", "\u{85}"];
    let stems: Vec<&str> =
        "a A aB Ab ABc ABC ªA Aª Ǆx ǅ ʰ \u{301} A\u{301}b \u{301}A 1 1234 Ⅷ ½ ' \
        's 'S 'ſ 're 'LL 'l don't DON'T / //\n !?\r\n/ … 日本 한 ß İ ﬁ 😀 👩\u{200d}🔬 \0 \
        <|endoftext|> _ a_b $x"
            .split(' ')
            .collect();
    let mut texts: Vec<String> = vec![String::new()];
    for a in stems.iter().chain(&blanks) {
        for b in stems.iter().chain(&blanks) {
            for c in blanks.iter().chain(&["", "x", "X", "'s", "7", "!"]) {
                texts.push(format!("{a}{b}{c}"));
                texts.push(format!("{c}{a}{b}"));
            }
        }
    }
    let different: Vec<String> = texts.iter().filter_map(|t| difference(t)).collect();
    assert!(different.is_empty(), "{} of {}: {:#?}", different.len(), texts.len(), &different[..1]);
}

#[test]
fn long_words() {
    for n in [98, 99, 100, 101, 102, 257, 4_000] {
        for unit in ["a", "ab", "=", "-", " ", "\n", "日", "xyzzy", "AbC", "0", "\u{301}", "é"] {
            assert_eq!(difference(&unit.repeat(n)), None, "{n} times {unit:?}");
            assert_eq!(difference(&format!("{}x", unit.repeat(n))), None, "{n} times {unit:?}, x");
        }
    }
}

#[test]
#[ignore = "nightly: slow"]
fn a_long_blank_run_is_counted_where_an_engine_overflows() {
    // As many as tiktoken can still take, and far more.
    let text = |n: usize| " ".repeat(n) + "x";
    assert_eq!(difference(&text(200_000)), None);
    let [small, large] =
        [500_000, 5_000_000].map(|n| seen::count(&text(n), Encoding::O200k) as f64);
    assert!((large / small - 10.0).abs() < 0.01, "{small} {large}");
}

#[test]
fn texts_of_this_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut open: Vec<_> =
        ["docs", "scenarios/data", "tests/data", "core/src"].map(|d| root.join(d)).into();
    let mut bytes = 0;
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|e| e.unwrap().path()));
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let end = text.floor_char_boundary(60_000);
            assert_eq!(by_lines(&text[..end]), None, "{}", path.display());
            bytes += end;
        }
    }
    assert!(bytes > 1_000_000, "only {bytes} bytes were compared");
}

/// Generates a character of one of many kinds, so that different kinds are adjacent.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => prop::char::range('a', 'z'),
        2 => prop::char::range('A', 'Z'),
        2 => prop::char::range(' ', '/'),
        1 => prop::char::range('0', '9'),
        2 => prop::sample::select(vec![' ', '\n', '\r', '\t', '\'', '/', 's', 'S', 'ſ', '\u{a0}']),
        1 => prop::char::range('\u{80}', '\u{5ff}'),
        1 => prop::char::range('\u{900}', '\u{2fff}'),
        1 => prop::char::range('\u{3000}', '\u{ffff}'),
        1 => any::<char>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_texts(text in prop::collection::vec(character(), 0..120)) {
        let text: String = text.into_iter().collect();
        prop_assert_eq!(difference(&text), None);
    }

    #[test]
    fn random_words(text in "([a-zA-Z_]{1,12}|[ \n]{1,3}|[0-9]{1,5}|[^a-z]{1,3}|\\p{L}{1,4}){0,40}") {
        prop_assert_eq!(difference(&text), None);
    }
}
