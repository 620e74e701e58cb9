//! Shapes of secrets (`shapes.toml`): the forms that vendors publish for their keys, and the names
//! before passwords and other values.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Deserialize;

use super::Finding;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShapesFile {
    colours: String,
    before: String,
    shared_users: Vec<String>,
    pub(super) secret_names: Vec<String>,
    pub(super) public_headers: Vec<String>,
    shapes: Vec<Shape>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    kind: String,
    /// Pattern in which the only group is the secret.
    pattern: String,
    #[serde(default)]
    check: Check,
}

/// Condition on the match of a pattern.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Check {
    #[default]
    None,
    Digit,
    DigitAndLetter,
    MadeUp,
    Chosen,
    Random,
    NotPlaceholder,
    Mail,
    User,
    /// The first line of a private key, whose other lines belong to the secret.
    PrivateKey,
}

impl Check {
    fn holds(self, text: &str) -> bool {
        match self {
            Check::None | Check::PrivateKey => true,
            Check::Digit => has_digit(text),
            Check::DigitAndLetter => has_digit_and_letter(text),
            Check::MadeUp => has_digit_and_letter(text) && is_not_placeholder(text),
            // A chosen password, and not a word.
            Check::Chosen => {
                let has_sign = text.bytes().any(|b| b"!@#%^*&+=?~".contains(&b));
                (has_digit(text) || has_sign) && is_not_placeholder(text)
            }
            Check::Random => is_random(text),
            Check::NotPlaceholder => is_not_placeholder(text),
            Check::Mail => is_mail(text),
            Check::User => is_user(text),
        }
    }
}

pub(super) static SHAPES: LazyLock<ShapesFile> = LazyLock::new(|| {
    let mut file: ShapesFile = toml::from_str(include_str!("shapes.toml"))
        .expect("the file is part of the program, and a test reads it");
    file.before = file.before.replace("{colours}", &file.colours);
    file
});

/// All patterns as one, with a group for each shape in their order.
static ANY: LazyLock<Regex> = LazyLock::new(|| {
    let ShapesFile { colours, before, shapes, .. } = &*SHAPES;
    let whole = |shape: &Shape| {
        let pattern = shape.pattern.replace("{before}", before).replace("{colours}", colours);
        format!("(?:{pattern})")
    };
    let all: Vec<String> = shapes.iter().map(whole).collect();
    // With boundaries of Unicode no automaton takes a text that is not ASCII, and a report took
    // nine times as long.
    let all = all.join("|").replace(r"\b", r"(?-u:\b)");
    Regex::new(&all).expect("the file is part of the program, and a test compiles it")
});

/// Returns the pattern of the text right before a secret.
pub(super) fn before() -> &'static str {
    &SHAPES.before
}

/// Returns the shape of a match, and the range of its secret.
fn shape_of(found: Captures<'_>) -> Option<(&'static Shape, Range<usize>)> {
    let mut shapes = SHAPES.shapes.iter().enumerate();
    shapes.find_map(|(i, shape)| Some((shape, found.get(i + 1)?.range())))
}

/// Finds the secrets of all shapes, in the order of their positions and without overlaps.
pub(super) fn find(text: &str) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(found) = ANY.captures_at(text, from) {
        let start = found.get(0).map_or(from, |whole| whole.start());
        let Some((shape, secret)) = shape_of(found) else { break };
        let end = match shape.check {
            Check::PrivateKey => key_end(text, secret.end),
            _ => Some(secret.end),
        };
        let holds = shape.check.holds(&text[secret.clone()]);
        if let Some(end) = end.filter(|_| holds) {
            out.push((&*shape.kind, secret.start..end));
            from = end;
        } else {
            // A secret may begin inside the rejected match, or right after its first character.
            let next = |at: usize| at + text[at..].chars().next().map_or(1, char::len_utf8);
            from = text.floor_char_boundary(secret.start.saturating_sub(1)).max(next(start));
        }
        if from > text.len() {
            break;
        }
    }
    out
}

/// Returns the kind of the shape that a whole secret has by itself, if any.
pub(super) fn kind_of(secret: &str) -> Option<&'static str> {
    let (shape, range) = ANY.captures(secret).and_then(shape_of)?;
    (range.len() == secret.len() && shape.check.holds(secret)).then_some(&*shape.kind)
}

/// Returns whether the content of a field is a secret as a whole: any password, other values if
/// they look generated.
pub(super) fn is_secret_field(name: &str, content: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['_', '-'], "");
    let ends = |words: &[&str]| words.iter().any(|w| name.ends_with(w));
    let named = ends(&["apikey", "secret", "token", "privatekey", "accesskey", "accountkey"]);
    ends(&["password", "passwd", "passphrase"]) && content.len() >= 6 && is_not_placeholder(content)
        || named && is_random(content)
}

fn has_digit_and_letter(text: &str) -> bool {
    has_digit(text) && text.bytes().any(|b| b.is_ascii_alphabetic())
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
}

/// Shortest secret that is known by its randomness, bytes.
const MIN_LENGTH: usize = 16;
/// Minimum entropy of a secret, bits per byte: that of 11 different bytes. Names made of words
/// repeat more letters.
const MIN_ENTROPY: f64 = 3.5;

/// Returns whether a text looks generated: letters and digits, not a version, a path or an
/// identifier.
fn is_random(text: &str) -> bool {
    let count = |is: fn(&u8) -> bool| text.bytes().filter(is).count();
    let (digits, lower, upper) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let mixed = lower > 0 && upper > 0 || digits > 2;
    text.len() >= MIN_LENGTH
        && digits > 0
        && lower + upper > 0
        && mixed
        && is_not_placeholder(text)
        && entropy(text) >= MIN_ENTROPY
}

/// Shannon entropy of a text, bits per byte.
pub(super) fn entropy(text: &str) -> f64 {
    let mut seen: HashMap<u8, usize> = HashMap::new();
    text.bytes().for_each(|b| *seen.entry(b).or_default() += 1);
    let all = text.len() as f64;
    seen.values().map(|&n| n as f64 / all).map(|p| -p * p.log2()).sum()
}

/// Returns whether a text is not a placeholder such as `${PASSWORD}`, `$PASSWORD`, `{pw}`, `%s` or
/// `****`.
fn is_not_placeholder(text: &str) -> bool {
    let starts = ["${", "$(", "{", "%(", "%s", "<", "[", "process.", "os.", "env."];
    let variable = text.strip_prefix('$').is_some_and(|name| {
        name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    });
    !variable
        && !starts.iter().any(|s| text.starts_with(s))
        && text.bytes().any(|b| !b"*.x".contains(&b))
}

/// How far an end of a private key is looked for, bytes.
const MAX_KEY_BYTES: usize = 16 << 10;
/// Characters of base64 in a row that make a line one of a key.
const KEY_LINE: usize = 16;

/// Returns the end of a private key with a first line that ends at `from`: after its last line,
/// whatever precedes the lines (numbers, quotes, diff marks), or, in a truncated text, after the
/// lines that look like a key. `None` = only the text of a first line.
fn key_end(text: &str, from: usize) -> Option<usize> {
    let rest = &text[from..text.floor_char_boundary(from + MAX_KEY_BYTES)];
    if let Some(at) = rest.find("-----END ") {
        let end = at + "-----END ".len();
        let close = rest[end..].find("-----").map_or(0, |at| at + "-----".len());
        return Some(from + end + close);
    }
    let base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
    let is_line = |line: &str| line.as_bytes().split(|b| !base64(*b)).any(|w| w.len() >= KEY_LINE);
    let (mut at, mut end) = (0, None);
    // A line that ends in JSON's way is one, too.
    for line in rest.split_inclusive(['\n', '\\']) {
        at += line.len();
        if is_line(line) {
            end = Some(from + at);
        } else if line.trim().len() > 2 {
            break;
        }
    }
    end
}

fn is_mail(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else { return false };
    let reserved = ["example.com", "example.org", "example.net"].contains(&host);
    let nobody = ["git", "noreply", "no-reply"].contains(&name);
    // `logo@2x.png` is a file.
    let file = host.starts_with(|c: char| c.is_ascii_digit()) && host.matches('.').count() == 1;
    !reserved && !nobody && !file
}

fn is_user(text: &str) -> bool {
    let numbered = text.strip_prefix("user").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    !numbered && !SHAPES.shared_users.iter().any(|name| name == text)
}
