//! Removal of secrets and people from text that others will read: keys, tokens, passwords, mail
//! addresses and names of home folders, found by their shapes.
//!
//! One [`Redactor`] gives the same secret the same replacement and different secrets different
//! ones, so references still match. Names of people in prose, hosts and company names have no shape
//! and stay.

pub mod headers;
mod rules;
mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ctxbench_scenarios::autofacts;
use ctxbench_session::{Entry, Session};
use ctxbench_util::plural::pluralize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use headers::RequestSecrets;

/// Replacement of a secret in texts that do not number their secrets.
pub const MARK: &str = "[redacted]";

/// Kinds of findings that are people and not secrets.
const MAIL: &str = "mail";
const USER: &str = "user";

/// Kind and position of a secret in a text, or of a person.
type Finding = (&'static str, Range<usize>);

/// Finds secrets and people in a text, in the order of their positions and without overlaps.
fn findings(text: &str) -> Vec<Finding> {
    let mut found = shapes::find(text);
    let shapes = found.len();
    for (id, range) in rules::find(text) {
        let overlaps = |(_, other): &Finding| other.start < range.end && range.start < other.end;
        // Findings of shapes are sorted, and so are those of rules.
        let after = found[..shapes].partition_point(|(_, other)| other.end <= range.start);
        let is_free = !found[..shapes].get(after).is_some_and(overlaps)
            && !found[shapes..].last().is_some_and(overlaps);
        if is_free {
            found.push((id, range));
        }
    }
    found.sort_by_key(|(_, range)| range.start);
    found
}

fn replaced<'a>(
    text: &'a str,
    findings: Vec<Finding>,
    mut by: impl FnMut(&'static str, &str) -> String,
) -> Cow<'a, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (kind, range) in findings {
        out += &text[copied..range.start];
        out += &by(kind, &text[range.clone()]);
        copied = range.end;
    }
    if copied == 0 { text.into() } else { (out + &text[copied..]).into() }
}

/// Replaces secrets in a text by [`MARK`]: `key` wherever it occurs, and all keys, tokens and
/// passwords that this module finds. Names of people and folders stay.
pub fn without_secrets(text: &str, key: Option<&str>) -> String {
    let text = match key.filter(|key| !key.is_empty()) {
        Some(key) => Cow::Owned(text.replace(key, MARK)),
        None => Cow::Borrowed(text),
    };
    let mut found = findings(&text);
    found.retain(|(kind, at)| ![MAIL, USER].contains(kind) && !text[at.clone()].contains(MARK));
    replaced(&text, found, |_, _| MARK.to_string()).into_owned()
}

/// Takes secrets out, and remembers which it has met.
#[derive(Default)]
pub struct Redactor {
    met: HashMap<String, String>,
    last: HashMap<&'static str, usize>,
    /// Number of replacements.
    replaced: usize,
    /// Short texts without a secret, such as names of fields, which repeat in every row.
    clean: HashSet<String>,
}

/// Maximum number of texts that a redactor remembers as clean, and of bytes of each.
const MAX_CLEAN: (usize, usize) = (10_000, 64);

impl Redactor {
    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.clean.contains(text) {
            return text.into();
        }
        let found = findings(text);
        if found.is_empty() && text.len() <= MAX_CLEAN.1 && self.clean.len() < MAX_CLEAN.0 {
            self.clean.insert(text.to_string());
        }
        replaced(text, found, |kind, secret| self.replacement(kind, secret))
    }

    fn replacement(&mut self, kind: &'static str, secret: &str) -> String {
        self.replaced += 1;
        if let Some(known) = self.met.get(secret) {
            return known.clone();
        }
        // A vendor's form is more specific than a name before it.
        let kind = shapes::kind_of(secret).unwrap_or(kind);
        let last = self.last.entry(kind).or_default();
        *last += 1;
        let n = *last;
        let text = match kind {
            MAIL => format!("person{n}@example.com"),
            // As part of a path.
            USER => format!("user{n}"),
            _ => format!("[redacted-{kind}-{n}]"),
        };
        self.met.insert(secret.to_string(), text.clone());
        text
    }

    /// Redacts all texts of a JSON value, names of fields, and values of fields that are named like
    /// secrets.
    pub fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(new) = self.text(text) {
                    *text = new;
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|v| self.value(v)),
            Value::Object(fields) => {
                self.named(fields);
                let mut renamed = Vec::new();
                for (name, value) in fields.iter_mut() {
                    match value {
                        Value::String(s) if shapes::is_secret_field(name, s) => {
                            *s = self.replacement("secret", s);
                        }
                        other => self.value(other),
                    }
                    if let Cow::Owned(new) = self.text(name) {
                        renamed.push((name.clone(), new));
                    }
                }
                for (old, new) in renamed {
                    fields.remove(&old).and_then(|value| fields.insert(new, value));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `{"name": "DB_PASSWORD", "value": "…"}`.
    fn named(&mut self, fields: &mut Map<String, Value>) {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        if let (Some(name), Some(value)) = (text("name").or(text("key")), text("value"))
            && shapes::is_secret_field(name, value)
        {
            let put = self.replacement("secret", value);
            fields.insert("value".into(), put.into());
        }
    }

    pub fn typed<T>(&mut self, typed: &T) -> serde_json::Result<T>
    where
        T: Clone + Serialize + DeserializeOwned,
    {
        let mut value = serde_json::to_value(typed)?;
        let before = self.replaced;
        self.value(&mut value);
        if self.replaced == before { Ok(typed.clone()) } else { serde_json::from_value(value) }
    }

    /// Returns a note with counts, such as "redacted: 1 aws-key, 2 mail addresses"; `None` =
    /// nothing was redacted.
    pub fn note(&self) -> Option<String> {
        let counted = |(kind, n): (&&str, &usize)| match *kind {
            MAIL => pluralize(*n as u64, "mail address"),
            USER if *n == 1 => "1 name of a home folder".into(),
            USER => format!("{n} names of home folders"),
            kind => pluralize(*n as u64, kind),
        };
        let mut all: Vec<String> = self.last.iter().map(counted).collect();
        all.sort_unstable();
        (!all.is_empty()).then(|| format!("note: redacted: {}", all.join(", ")))
    }

    /// Redacts a session. Facts that were found in its text are found again in the redacted text;
    /// other facts are redacted as they are.
    pub fn session(&mut self, session: &Session) -> serde_json::Result<Session> {
        let header = self.typed(&session.header)?;
        let entries = session.entries.iter().map(|e| self.typed(e));
        let entries = entries.collect::<serde_json::Result<Vec<Entry>>>()?;
        let mut found = Session { facts: vec![], ..session.clone() };
        autofacts::add(&mut found);
        let mut redacted = Session { header, entries, facts: vec![] };
        if found.facts == session.facts {
            autofacts::add(&mut redacted);
        } else {
            let facts = session.facts.iter().map(|f| self.typed(f));
            redacted.facts = facts.collect::<serde_json::Result<_>>()?;
        }
        Ok(redacted)
    }
}
