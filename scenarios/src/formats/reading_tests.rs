//! Readings: recordings as text and their sessions. Each file of `tests/data/readings` has those of a format.
//!
//! The heading is `FORMAT: SENTENCE`. A file without text is a recording below `tests/data`; an SQL file
//! builds a database. The format reads the first file, or its folder if it has one. Of a session,
//! `@ KEY: VALUE` is a property and each other line an entry, where `⏎` is a line break. `…` matches any
//! text.

#[path = "../../../tests/tests/common/readings.rs"]
pub(crate) mod readings;

use std::fmt::Write;
use std::path::Path;

use ctxbench_session::{Entry, RecordedUsage};

use readings::{Reading, readings};

use super::testing::{database, describe, recorded, times};
use super::*;
use crate::Loaded;

impl Reading<'_> {
    fn import(&self, format: &str) -> Vec<Vec<(String, String)>> {
        let read = |path: &Path| {
            let source = Source::at(path);
            let parts = parts(&source).len();
            super::testing::import(format, &source)
                .iter()
                .map(|one| properties(one, parts))
                .collect()
        };
        match self.files.as_slice() {
            [(name, text)] if text.is_empty() && name.ends_with(".sql") => {
                read(&database(&format!("../{name}")).1)
            }
            [(name, text)] if text.is_empty() => read(&recorded("..").join(name)),
            files => {
                let folder = tempfile::tempdir().unwrap();
                for (name, text) in files {
                    let path = folder.path().join(name);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text.join("\n")).unwrap();
                }
                let (first, _) = files[0].0.split_once('/').unwrap_or((files[0].0, ""));
                read(&folder.path().join(first))
            }
        }
    }

    /// Compares the sessions with those expected. Returns the differences.
    fn differences(&self) -> String {
        let (format, _) = self.heading.split_once(": ").unwrap();
        let found = self.import(format);
        let mut told = String::new();
        if found.len() != self.sessions.len() {
            writeln!(told, "{} sessions", found.len()).unwrap();
        }
        for (found, expected) in found.iter().zip(&self.sessions) {
            let property = |line: &&&str| line.starts_with("@ ");
            let entries: Vec<&str> =
                expected.iter().filter(|line| !property(line)).copied().collect();
            let of_entries = ("entries", entries.join("\n"));
            let named = expected.iter().filter(property).map(|line| {
                let (key, value) = line[2..].split_once(':').unwrap();
                (key, value.trim_start().to_string())
            });
            for (key, value) in named.chain([of_entries]) {
                let found = found.iter().find(|(k, _)| k == key);
                let (_, found) = found.unwrap_or_else(|| panic!("{}: no {key}", self.heading));
                if !is_like(found, &value) {
                    writeln!(told, "{key}:\n{found}\nexpected:\n{value}").unwrap();
                }
            }
        }
        told
    }
}

/// Returns whether a text matches a pattern, in which `…` matches any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('…') else { return text == pattern };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut rest: Vec<&str> = rest.split('…').collect();
    let last = rest.pop().unwrap_or_default();
    let is_found = rest
        .into_iter()
        .all(|part| left.find(part).map(|at| left = &left[at + part.len()..]).is_some());
    is_found && left.ends_with(last)
}

fn list(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(" ")
}

/// Returns the properties of a session by name, `entries` among them.
fn properties(loaded: &Loaded, parts: usize) -> Vec<(String, String)> {
    let Loaded { session, warnings, .. } = loaded;
    let (header, entries) = (&session.header, &session.entries);
    let tokens = |u: &RecordedUsage| {
        let written = u.cache_write.saturating_add(u.cache_write_1h);
        format!("{}+{}+{written}+{}", u.input, u.cache_read, u.output)
    };
    let maybe = |usage: Option<&RecordedUsage>| usage.map_or("-".to_string(), tokens);
    let calls = || {
        entries.iter().filter_map(|e| match e {
            Entry::Assistant(a) => Some(("reply", a.usage.as_ref()?, &a.model)),
            Entry::RecordedCall(c) => Some(("call", &c.usage, &c.model)),
            Entry::RecordedCompaction(c) => Some(("compaction", c.usage.as_ref()?, &c.model)),
            _ => None,
        })
    };
    let called = |(kind, usage, _): (&str, &RecordedUsage, _)| {
        let id = usage.billing.call_alias.as_ref().or(usage.billing.call_id.as_ref());
        let id = id.map_or(String::new(), |id| format!(" {id}"));
        let request = usage.billing.call_in.as_ref().map_or(String::new(), |r| format!(" in {r}"));
        format!("{kind}{id}{request} = {}", tokens(usage))
    };
    let compactions = || {
        entries.iter().filter_map(|e| match e {
            Entry::RecordedCompaction(c) => Some(c),
            _ => None,
        })
    };
    let triggers = compactions().map(|c| c.trigger.map_or("-".into(), |t| format!("{t:?}")));
    let told = compactions().filter_map(|c| c.instructions.clone());
    let usd = calls().filter_map(|(_, u, _)| u.billing.told_usd).map(|usd| format!("{usd:.5}"));
    let replies = entries.iter().filter_map(Entry::as_reply);
    let estimates = calls().filter_map(|(_, usage, _)| usage.output_estimate);
    let number = |n: Option<u64>| n.map_or("-".to_string(), |n| n.to_string());
    let text = |lines: Vec<String>| {
        lines.iter().map(|line| line.replace('\n', "⏎")).collect::<Vec<_>>().join("\n")
    };
    let all = [
        ("id", header.id.clone()),
        ("title", header.title.clone()),
        ("model", header.model.clone().unwrap_or("-".into())),
        ("started", header.started.clone().unwrap_or_default()),
        ("window", number(header.context_window)),
        ("prefix", number(header.prefix_tokens)),
        ("parts", parts.to_string()),
        ("keys", list(entries.iter().filter_map(Entry::key).map(str::to_string))),
        ("counters", list(replies.map(|r| maybe(r.usage.as_ref())))),
        ("estimates", list(estimates.map(|n| n.to_string()))),
        ("compactions", list(compactions().map(|c| maybe(c.usage.as_ref())))),
        ("triggers", list(triggers)),
        ("instructions", list(told)),
        ("calls", calls().map(called).collect::<Vec<_>>().join("; ")),
        ("payers", list(calls().filter_map(|(_, _, model)| model.clone()))),
        ("usd", list(usd)),
        ("times", list(times(session).iter().map(u64::to_string))),
        ("notes", text(warnings.clone()).replace('\n', "⏎")),
        ("entries", text(describe(session))),
    ];
    all.map(|(key, value)| (key.to_string(), value)).into()
}

#[test]
fn recordings_are_read_as_told() {
    let folder = recorded("../readings");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for case in readings(&text) {
            let told = case.differences();
            assert!(told.is_empty(), "{}: {}\n{told}", file.display(), case.heading);
        }
    }
}
