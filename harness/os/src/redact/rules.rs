//! Rules of gitleaks: keys and tokens in the forms that vendors publish (`gitleaks/rules.toml`).
//!
//! A rule runs only near one of its keywords, so that a long text without keywords costs one pass.
//! The boundaries of a rule are widened: gitleaks reads source files, while sessions contain keys
//! inside JSON strings, terminal colours and prose.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::Finding;
use super::shapes::{before, entropy};

/// Text before a keyword that a rule may match, bytes.
const LEAD: usize = 256;
/// Text after a keyword that a rule may match, bytes.
const REACH: usize = 4096;
/// Beginning of every replacement text. A match that contains it was redacted before.
const REPLACED: &str = "[redacted-";

#[derive(Deserialize)]
struct RulesFile {
    rules: Vec<SecretRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretRule {
    id: String,
    regex: String,
    /// Shannon entropy that a secret must exceed, bits per character.
    #[serde(default)]
    entropy: f64,
    /// Capture group of the secret; `None` = the first group that matched.
    secret_group: Option<usize>,
    /// Texts of which one must be near, in lower case.
    keywords: Vec<String>,
    /// Patterns of placeholders, which are not secrets.
    #[serde(default)]
    allowed: Vec<String>,
    #[serde(skip)]
    compiled: OnceLock<(Regex, Vec<Regex>)>,
}

struct RuleSet {
    rules: Vec<SecretRule>,
    keywords: AhoCorasick,
    /// Index of the rule of each keyword.
    owners: Vec<usize>,
}

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let RulesFile { rules } = toml::from_str(include_str!("gitleaks/rules.toml"))
        .expect("the file is part of the program, and a test reads it");
    let pairs = || {
        let pairs = rules.iter().enumerate();
        pairs.flat_map(|(i, rule)| rule.keywords.iter().map(move |keyword| (i, keyword)))
    };
    let keywords = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(pairs().map(|(_, keyword)| keyword))
        .expect("a few hundred short keywords fit");
    let owners = pairs().map(|(i, _)| i).collect();
    RuleSet { rules, keywords, owners }
});

/// Finds the secrets of a text by the ids of their rules, sorted by position. Findings of different rules may overlap.
pub(super) fn find(text: &str) -> Vec<Finding> {
    let set = &*RULES;
    let mut regions: BTreeMap<usize, Vec<Range<usize>>> = BTreeMap::new();
    for hit in set.keywords.find_overlapping_iter(text) {
        let start = hit.start().saturating_sub(LEAD);
        let end = (hit.end() + REACH).min(text.len());
        let of_rule = regions.entry(set.owners[hit.pattern().as_usize()]).or_default();
        match of_rule.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => of_rule.push(start..end),
        }
    }
    let mut found = Vec::new();
    for (index, regions) in regions {
        for region in regions {
            let start = text.floor_char_boundary(region.start);
            let end = text.ceil_char_boundary(region.end);
            set.rules[index].find_in(&text[..end], start, &mut found);
        }
    }
    found.sort_by_key(|(_, range)| range.start);
    found
}

impl SecretRule {
    fn find_in(&'static self, text: &str, mut from: usize, found: &mut Vec<Finding>) {
        let (regex, allowed) = self.compiled.get_or_init(|| {
            let allowed = self.allowed.iter().map(|pattern| compile(pattern));
            let allowed = allowed.collect::<Result<_, _>>();
            let regex = compile(&widened(&self.regex));
            (regex.expect(COMPILES), allowed.expect(COMPILES))
        });
        while let Some(captures) = regex.captures_at(text, from) {
            let whole = captures.get(0).map_or(from..from, |group| group.range());
            let secret = match self.secret_group {
                Some(group) => captures.get(group),
                None => captures.iter().skip(1).flatten().next(),
            };
            if let Some(secret) = secret {
                let value = secret.as_str();
                let is_secret = entropy(value) > self.entropy
                    && !value.contains(REPLACED)
                    && !allowed.iter().any(|pattern| pattern.is_match(value));
                if is_secret {
                    found.push((&self.id, secret.range()));
                }
            }
            // The character after one secret may be the one before the next.
            let next = secret.map_or(whole.end, |secret| secret.end());
            from = if next > from { next } else { text.ceil_char_boundary(next + 1) };
            if from > text.len() {
                return;
            }
        }
    }
}

const COMPILES: &str = "the rules are part of the program, and a test compiles them";

/// End of most patterns of gitleaks: the characters after a key in source code.
const END: &str = r#"(?:[\x60'"\s;]|\\[nr]|$)"#;
/// Characters after a key in any text.
const ANY_END: &str = r"(?:(?u:[^A-Za-z0-9])|$)";

/// Widens the boundaries of a pattern and makes its first group the secret.
fn widened(pattern: &str) -> String {
    let pattern = pattern.replace(END, ANY_END);
    for flags in ["", "(?i)"] {
        if let Some(rest) = pattern.strip_prefix(flags).and_then(|p| p.strip_prefix(r"\b")) {
            return grouped(&format!("(?u:{})", before()), &format!("{flags}{rest}"));
        }
    }
    grouped("", &pattern)
}

fn grouped(before: &str, pattern: &str) -> String {
    let has_group = compile(pattern).is_ok_and(|regex| regex.captures_len() > 1);
    if has_group { format!("{before}(?:{pattern})") } else { format!("{before}({pattern})") }
}

/// Compiles a pattern, with ASCII classes where it allows this: they are many times smaller.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    let ascii = RegexBuilder::new(pattern).unicode(false).build();
    ascii.or_else(|_| Regex::new(&pattern.replace(r"\b", r"(?-u:\b)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles() {
        for rule in &RULES.rules {
            for pattern in rule.allowed.iter().chain([&rule.regex, &widened(&rule.regex)]) {
                assert!(compile(pattern).is_ok(), "{}: {pattern}", rule.id);
            }
            assert!(!rule.keywords.is_empty(), "{}", rule.id);
        }
        assert!(RULES.rules.len() > 200);
    }

    #[test]
    fn many_keywords_without_a_secret_take_linear_time() {
        let text = "jira sk_live npm_ hf_ key=a&".repeat(20_000);
        assert!(find(&text).is_empty());
    }
}
