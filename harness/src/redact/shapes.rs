//! Shapes of secrets. Where a vendor publishes the form of its keys, the shape has that form;
//! otherwise the name before a value identifies it.
//!
//! Forms: [GitHub](https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github#githubs-token-formats),
//! [GitLab](https://docs.gitlab.com/security/tokens/#token-prefixes),
//! [AWS](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids),
//! [Slack](https://docs.slack.dev/authentication/tokens),
//! [Stripe](https://docs.stripe.com/keys), [PyPI](https://pypi.org/help/#apitoken),
//! [JWT](https://www.rfc-editor.org/rfc/rfc7519), [PEM](https://www.rfc-editor.org/rfc/rfc7468).

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

/// A sort of secret.
pub(super) struct Shape {
    /// Kind of the replacement.
    pub(super) put: Replacement,
    form: ShapeForm,
    /// Validates a match of the pattern.
    pub(super) matches: fn(&str) -> bool,
    /// Returns the end of a secret, given the text and the end of the match; `None` = not a secret.
    pub(super) end: fn(&str, usize) -> Option<usize>,
}

/// Position of the secret in a pattern.
enum ShapeForm {
    /// A lead and the secret after it, with no letter or digit right before them.
    Alone(&'static str, &'static str),
    /// The pattern's only group is the secret.
    Within(&'static str),
}

/// Kind of replacement; the number distinguishes secrets of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Replacement {
    /// `[redacted-KIND-1]`
    Key(&'static str),
    /// `person1@example.com`
    Mail,
    /// `user1`, as part of a path.
    User,
}

impl Replacement {
    pub(super) fn text(self, number: usize) -> String {
        match self {
            Replacement::Key(kind) => format!("[redacted-{kind}-{number}]"),
            Replacement::Mail => format!("person{number}@example.com"),
            Replacement::User => format!("user{number}"),
        }
    }

    /// So many of them, for people.
    pub(super) fn counted(self, n: usize) -> String {
        let (one, more) = match self {
            Replacement::Key(kind) => {
                return format!("{n} {kind}{}", if n == 1 { "" } else { "s" });
            }
            Replacement::Mail => ("mail address", "mail addresses"),
            Replacement::User => ("name of a home folder", "names of home folders"),
        };
        format!("{n} {}", if n == 1 { one } else { more })
    }
}

impl Shape {
    const fn new(put: Replacement, form: ShapeForm) -> Shape {
        Shape { put, form, matches: |_| true, end: |_, found| Some(found) }
    }

    const fn only(self, matches: fn(&str) -> bool) -> Shape {
        Shape { matches, ..self }
    }
}

/// A key that is told by its own form.
const fn key(kind: &'static str, pattern: &'static str) -> Shape {
    key_after(kind, "", pattern)
}

/// A key that is told by what stands right before it.
const fn key_after(kind: &'static str, lead: &'static str, pattern: &'static str) -> Shape {
    Shape::new(Replacement::Key(kind), ShapeForm::Alone(lead, pattern))
}

/// Secret that the text around it identifies.
const fn within(kind: &'static str, pattern: &'static str) -> Shape {
    Shape::new(Replacement::Key(kind), ShapeForm::Within(pattern))
}

/// The name of a home folder.
const fn user(pattern: &'static str) -> Shape {
    Shape::new(Replacement::User, ShapeForm::Within(pattern)).only(is_user)
}

/// Colours of a terminal, as they are and as JSON, a shell or a program writes them.
macro_rules! colours {
    () => {
        r"(?:(?:\x1b|\\+(?:u001[bB]|x1[bB]|e|033))\[[0-9;]*[A-Za-z])"
    };
}

/// Pattern of the text right before a lead: not a letter or digit, but the escape of a line break
/// in JSON or of a byte in a URL, or a colour code.
macro_rules! before {
    () => {
        concat!(r"(?:^|\\[ntr]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|[^A-Za-z0-9]|", colours!(), ")")
    };
}

/// Pattern between a name and its value: `: `, `=`, `": "`, colours.
macro_rules! assigned {
    ($sign:literal, $quote:literal) => {
        concat!($sign, r"\s*", colours!(), "*", $quote, colours!(), "*")
    };
}

/// The first that fits at a place is it.
pub(super) const ALL: &[Shape] = &[
    Shape {
        end: key_end,
        ..within("private-key", r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)")
    },
    key("aws-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    key("github-token", r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{40,}"),
    key("gitlab-token", r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|oas|agent|imt)-[A-Za-z0-9_.-]{20,}"),
    key("slack-token", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9.-]{10,}"),
    key_after("webhook", r"hooks\.slack\.com/services/", "[A-Za-z0-9/]{20,}"),
    key_after("webhook", r"discord(?:app)?\.com/api/webhooks/", r"\d+/[A-Za-z0-9_-]{20,}"),
    key("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    key("openai-key", r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}"),
    key("openai-key", r"sk-[A-Za-z0-9_-]{20,}").only(has_digit),
    key("google-key", r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"),
    key("stripe-key", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}"),
    key("huggingface-token", r"hf_[A-Za-z0-9]{30,}"),
    key("model-key", r"(?:gsk_|xai-|r8_|pplx-|tvly-|fw_)[A-Za-z0-9_-]{24,}").only(has_digit),
    key("twilio-key", r"(?:SK|AC)[0-9a-f]{32}\b"),
    key("token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}|lin_api_[A-Za-z0-9]{32,}|sbp_[a-f0-9]{40}"),
    key("token", r"ntn_[A-Za-z0-9]{40,}|figd_[A-Za-z0-9_-]{30,}|PMAK-[A-Za-z0-9-]{50,}"),
    key("token", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{40,}|\d{8,10}:AA[A-Za-z0-9_-]{33}"),
    // Notion's older form, and the signature of a shared address of Azure's storage
    // (https://learn.microsoft.com/rest/api/storageservices/create-service-sas).
    key("token", r"secret_[A-Za-z0-9]{40,}"),
    key_after("signature", "sig=", r"[A-Za-z0-9%+/_-]{30,}=*"),
    key("jwt", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
    within("password", r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:([^\s/@"'<>]+)@"#)
        .only(is_not_placeholder),
    key_after(
        "credential",
        concat!(
            r#"(?i:authorization|x-api-key)(?:\\*["'])?\s?[:=]\s*(?:\\*["'])?"#,
            r"(?:(?i:bearer|basic|token)\s+)?",
        ),
        r"[A-Za-z0-9+/_.=~-]{8,}",
    )
    .only(has_digit),
    key_after("credential", r"(?i:bearer|basic)\s+", r"[A-Za-z0-9+/_.=~-]{16,}").only(has_digit),
    within(
        "password",
        concat!(
            r"(?i:pass|pwd)[A-Za-z0-9_-]*\s?",
            assigned!("[:=]", ""),
            r#"([^\s"'\\/$<>{}()\[\];,&|:=\x1b]{6,})"#
        ),
    )
    .only(has_digit_and_letter),
    // curl -u NAME:PASSWORD
    within("password", r#"(?:^|\s)(?:-u|--user)(?:\s+|=)["']?[^\s:"'/]+:([^\s"'\\]{4,})"#)
        .only(is_made_up),
    // Options of a command: any value in quotes, otherwise values that are not words of a sentence.
    within(
        "password",
        concat!(
            before!(),
            r"--(?:[\w-]+-)?(?:password|passwd|passphrase)(?:=|\s+)",
            r#"\\*["']([^"'\\\r\n]{4,128})"#,
        ),
    )
    .only(is_not_placeholder),
    within(
        "password",
        concat!(
            before!(),
            r"--(?:[\w-]+-)?(?:password|passwd|passphrase)(?:=|\s+)",
            r#"([^\s"'\\]{4,})"#,
        ),
    )
    .only(is_chosen),
    within(
        "secret",
        concat!(
            before!(),
            r"--(?:[\w-]+-)?(?:token|secret|api-key)(?:=|\s+)",
            r#"(?:\\*["'])?([^\s"'\\]{8,})"#,
        ),
    )
    .only(is_made_up),
    within("password", concat!(before!(), r#"sshpass\s+-p\s*(?:\\*["'])?([^\s"'\\]{3,})"#))
        .only(is_not_placeholder),
    // -p without a blank is the password, with one the next word is the database.
    within(
        "password",
        concat!(
            before!(),
            r"(?:mysql|mysqldump|mysqladmin|mariadb)\b",
            r#"[^\n|;&]{0,200}?\s-p(?:\\*["'])?([^\s"'\\]{3,})"#,
        ),
    )
    .only(is_not_placeholder),
    within(
        "cookie",
        concat!(
            before!(),
            r#"(?i:(?:set-)?cookie)(?:\\*["'])?:\s*"#,
            r#"(?:\\*["'])?([\w.-]+=[^\s"'\\]{8,}[^"'\\\r\n]*)"#,
        ),
    )
    .only(has_digit),
    // .netrc
    within("password", r"\blogin(?:\s|\\n)+[^\s\\]+(?:\s|\\n)+password(?:\s|\\n)+([^\s\\]{4,})")
        .only(is_not_placeholder),
    within("password", r"<(?i:(?:\w+:)?(?:password|passwd|passphrase))>\s*([^<>\s]{4,})\s*</")
        .only(is_not_placeholder),
    within("secret", r"<(?i:(?:\w+:)?[\w-]*(?:secret|token|api[_-]?key))>\s*([^<>\s]{8,})\s*</")
        .only(is_random),
    // In quotes: whatever it is.
    within(
        "password",
        concat!(
            r#"(?i:passw(?:or)?d|passphrase|pwd)[A-Za-z0-9_-]*(?:\\*["'])?"#,
            colours!(),
            r"*\s*",
            assigned!("(?:=>|:=|[:=])", r#"\\*["']"#),
            r#"([^\s"'\\\x1b]{6,}|[^"'\\\r\n\x1b]{6,128})"#,
            colours!(),
            r#"*\\*["']"#
        ),
    )
    .only(is_not_placeholder),
    within(
        "secret",
        concat!(
            r"(?i:api[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|private[_-]?key|",
            r"access[_-]?key|account[_-]?key|credentials?)[A-Za-z0-9_-]*",
            r#"(?:\\*["'])?"#,
            colours!(),
            r"*\s*",
            assigned!("(?:=>|:=|[:=])", r#"(?:\\*["'])?"#),
            r"([A-Za-z0-9+/_=.~!@#%^*-]{8,})"
        ),
    )
    .only(is_random),
    Shape::new(
        Replacement::Mail,
        ShapeForm::Alone("", r"\w[\w.%+-]*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}\b"),
    )
    .only(is_mail),
    // With a blank in it, where a folder below ends it.
    user(r"(?:^|\\[ntr]|[^A-Za-z0-9_.])/Users/(\w[\w.-]*(?:\\{0,2} [A-Z][\w.-]*){1,2})/"),
    user(concat!(
        r"(?:^|\\[ntr]|",
        colours!(),
        r"|[^A-Za-z0-9_.]|/mnt/[a-z]|/[a-z]|/var|/export)/(?:home|Users)/(\w[\w.-]*)"
    )),
    user(r"[A-Za-z]:(?:\\{1,8}|/)(?i:users)(?:\\{1,8}|/)(\w[\w.-]*(?: [A-Z][\w.-]*)?)"),
    // How Claude Code names the folder of a project.
    user(r#"(?:^|[\s/"'])-(?:home|Users)-([A-Za-z0-9]+)"#),
];

/// See [`before`].
pub(super) const BEFORE: &str = before!();

/// All patterns as one, with a group for each of [`ALL`] in their order.
pub(super) static ANY: LazyLock<Regex> = LazyLock::new(|| {
    let whole = |s: &Shape| match s.form {
        ShapeForm::Alone(lead, pattern) => format!("(?:{}{lead}({pattern}))", before!()),
        ShapeForm::Within(pattern) => format!("(?:{pattern})"),
    };
    let all: Vec<String> = ALL.iter().map(whole).collect();
    // With boundaries of Unicode no automaton takes a text that is not ASCII, and a report took
    // nine times as long.
    let all = all.join("|").replace(r"\b", r"(?-u:\b)");
    Regex::new(&all).expect("the patterns are constants, and a test compiles them")
});

/// Returns whether the content of a field is a secret as a whole: any password, other values if
/// they look generated.
pub(super) fn is_secret_field(name: &str, content: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['_', '-'], "");
    let ends = |words: &[&str]| words.iter().any(|w| name.ends_with(w));
    let named = ends(&["apikey", "secret", "token", "privatekey", "accesskey", "accountkey"]);
    ends(&["password", "passwd", "passphrase"]) && content.len() >= 6 && is_not_placeholder(content)
        || named && is_random(content)
}

fn is_made_up(text: &str) -> bool {
    has_digit_and_letter(text) && is_not_placeholder(text)
}

/// Returns whether a text looks like a chosen password and not like a word.
fn is_chosen(text: &str) -> bool {
    let sign = |b: u8| b"!@#%^*&+=?~".contains(&b);
    (has_digit(text) || text.bytes().any(sign)) && is_not_placeholder(text)
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
    let mut to = text.len().min(from + MAX_KEY_BYTES);
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    let rest = &text[from..to];
    if let Some(end) = rest.find("-----END ") {
        let behind = &rest[end + "-----END ".len()..];
        let close = behind.find("-----").map_or(0, |at| at + "-----".len());
        return Some(from + end + "-----END ".len() + close);
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

/// Names of home folders that do not identify a person.
const SHARED_NAMES: &[&str] = &[
    "user",
    "you",
    "your",
    "username",
    "me",
    "name",
    "runner",
    "ubuntu",
    "vscode",
    "node",
    "app",
    "root",
    "Shared",
    "Public",
    "linuxbrew",
    "codespace",
    "sandbox",
];

fn is_user(text: &str) -> bool {
    let numbered = text.strip_prefix("user").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    !numbered && !SHARED_NAMES.contains(&text)
}
