//! Removal of secrets and people from text that others will read: keys, tokens, passwords, mail
//! addresses and names of home folders, found by their shapes.
//!
//! One [`Redactor`] gives the same secret the same replacement and different secrets different
//! ones, so references still match. Names of people in prose, hosts and company names have no shape
//! and stay.

pub(crate) mod headers;
mod rules;
mod shapes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ctxbench_core::session::{Entry, Session};
use ctxbench_reports::record::{Results, RunRecord};
use ctxbench_scenarios::autofacts;
use regex::{Captures, Match};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use headers::RequestSecrets;
use shapes::{ALL, ANY, Replacement, Shape};

/// Replacement of a secret in texts that do not number their secrets.
pub(crate) const MARK: &str = "[redacted]";

/// Returns the shape that matched, and its secret.
fn group(found: Captures<'_>) -> Option<(&'static Shape, Match<'_>)> {
    ALL.iter().enumerate().find_map(|(i, shape)| Some((shape, found.get(i + 1)?)))
}

/// Secret of a text, or a person.
struct Finding {
    put: Replacement,
    range: Range<usize>,
}

/// Finds secrets and people in a text, in the order of their positions and without overlaps.
fn findings(text: &str) -> Vec<Finding> {
    let mut found = find_shapes(text);
    let shapes = found.len();
    for (id, range) in rules::find(text) {
        let overlaps =
            |other: &Finding| other.range.start < range.end && range.start < other.range.end;
        // Findings of shapes are sorted, and so are those of rules.
        let after = found[..shapes].partition_point(|other| other.range.end <= range.start);
        let is_free = !found[..shapes].get(after).is_some_and(overlaps)
            && !found[shapes..].last().is_some_and(overlaps);
        if is_free {
            found.push(Finding { put: Replacement::Key(id), range });
        }
    }
    found.sort_by_key(|finding| finding.range.start);
    found
}

/// Finds the matches of [`shapes`].
fn find_shapes(text: &str) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(found) = ANY.captures_at(text, from) {
        let start = found.get(0).map_or(from, |whole| whole.start());
        let Some((shape, secret)) = group(found) else { break };
        let matches = (shape.matches)(secret.as_str());
        if let Some(end) = (shape.end)(text, secret.end()).filter(|_| matches) {
            out.push(Finding { put: shape.put, range: secret.start()..end });
            from = end;
        } else {
            // A secret may begin inside the rejected match, or right after its first character.
            let next = |at: usize| at + text[at..].chars().next().map_or(1, char::len_utf8);
            from = text.floor_char_boundary(secret.start().saturating_sub(1)).max(next(start));
        }
        if from > text.len() {
            break;
        }
    }
    out
}

/// Replaces secrets in a text by [`MARK`]: `key` wherever it occurs, and all keys, tokens and
/// passwords that this module finds. Names of people and folders stay.
pub(crate) fn without_secrets(text: &str, key: Option<&str>) -> String {
    let text = match key.filter(|key| !key.is_empty()) {
        Some(key) => Cow::Owned(text.replace(key, MARK)),
        None => Cow::Borrowed(text),
    };
    let mut out = String::new();
    let mut copied = 0;
    for Finding { put, range } in findings(&text) {
        if matches!(put, Replacement::Key(_)) && !text[range.clone()].contains(MARK) {
            out += &text[copied..range.start];
            out += MARK;
            copied = range.end;
        }
    }
    out + &text[copied..]
}

/// Replaces secrets in all texts of a JSON value, see [`without_secrets`].
pub(crate) fn value_without_secrets(value: Value, key: Option<&str>) -> Value {
    match value {
        Value::String(text) => Value::String(without_secrets(&text, key)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| value_without_secrets(item, key)).collect())
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(k, v)| (k, value_without_secrets(v, key))).collect())
        }
        other => other,
    }
}

/// Takes secrets out, and remembers which it has met.
#[derive(Default)]
pub struct Redactor {
    /// Replacement of each secret.
    met: HashMap<String, String>,
    last: HashMap<Replacement, usize>,
    /// Texts without a secret. Results repeat most texts once per strategy.
    clean: HashSet<String>,
    /// Of these, bytes.
    clean_bytes: usize,
}

/// Maximum size of a text that is remembered as clean, bytes.
const REMEMBERED: usize = 20_000;

/// Maximum size of all texts that are remembered as clean, bytes: those of several sessions.
const REMEMBERED_IN_ALL: usize = 16 << 20;

impl Redactor {
    /// A text without its secrets.
    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        if self.clean.contains(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::new();
        let mut copied = 0;
        for Finding { put, range } in findings(text) {
            out += &text[copied..range.start];
            out += &self.replacement(put, &text[range.clone()]);
            copied = range.end;
        }
        if copied == 0 {
            if text.len() <= REMEMBERED {
                self.clean_bytes += text.len();
                if self.clean_bytes > REMEMBERED_IN_ALL {
                    self.clean.clear();
                    self.clean_bytes = text.len();
                }
                self.clean.insert(text.to_string());
            }
            return Cow::Borrowed(text);
        }
        Cow::Owned(out + &text[copied..])
    }

    fn replacement(&mut self, put: Replacement, secret: &str) -> String {
        if let Some(known) = self.met.get(secret) {
            return known.clone();
        }
        // A vendor's form is more specific than a name before it.
        let whole = |(shape, found): &(&Shape, Match<'_>)| {
            found.len() == secret.len() && (shape.matches)(secret)
        };
        let put = ANY.captures(secret).and_then(group).filter(whole).map_or(put, |g| g.0.put);
        let last = self.last.entry(put).or_default();
        *last += 1;
        let text = put.text(*last);
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
                for (name, mut value) in std::mem::take(fields) {
                    match &mut value {
                        Value::String(s) if shapes::is_secret_field(&name, s) => {
                            *s = self.replacement(Replacement::Key("secret"), s);
                        }
                        other => self.value(other),
                    }
                    fields.insert(self.text(&name).into_owned(), value);
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
            let put = self.replacement(Replacement::Key("secret"), value);
            fields.insert("value".into(), put.into());
        }
    }

    fn typed<T: Serialize + DeserializeOwned>(&mut self, typed: &T) -> serde_json::Result<T> {
        let mut value = serde_json::to_value(typed)?;
        self.value(&mut value);
        serde_json::from_value(value)
    }

    /// Returns a note with counts, such as "redacted: 1 aws-key, 2 mail addresses"; `None` =
    /// nothing was redacted.
    pub fn note(&self) -> Option<String> {
        let mut all: Vec<String> = self.last.iter().map(|(put, n)| put.counted(*n)).collect();
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

    /// A row of results without secrets.
    pub fn run(&mut self, run: &RunRecord) -> serde_json::Result<RunRecord> {
        self.typed(run)
    }

    /// Results without secrets.
    pub fn results(&mut self, results: &Results) -> serde_json::Result<Results> {
        self.typed(results)
    }
}
