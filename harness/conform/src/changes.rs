//! Differences between the recorded versions of a program, case by case, as text.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::{Case, CaseEvent, CaseItem, CaseRequest};
use ctxbench_core::block::BlockKind;
use serde::Serialize;
use serde_json::{Value, json};

use super::shorten::shorten;

/// Maximum number of names in a line.
const MAX_NAMED: usize = 6;

/// Changes from one version to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Changes {
    pub agent: String,
    pub from: String,
    pub to: String,
    /// Number of cases that both versions have.
    pub compared: usize,
    /// Number of compared cases without differences.
    pub same: usize,
    /// Differences that all cases share.
    pub everywhere: Vec<String>,
    /// Other differences by case name.
    pub cases: BTreeMap<String, Vec<String>>,
    /// Names of cases that only the older version has.
    pub only_before: Vec<String>,
    /// Names of cases that only the newer version has.
    pub only_after: Vec<String>,
}

/// Returns the changes from each recorded version of a program to the next.
pub fn changes(cases: &[Case]) -> Vec<Changes> {
    let mut programs: BTreeMap<(&str, String), BTreeMap<Vec<u64>, Named<'_>>> = BTreeMap::new();
    for case in cases {
        let (line, numbers) = parse_version(&case.version);
        let versions = programs.entry((&case.agent, line)).or_default();
        versions.entry(numbers).or_default().insert(&case.name, case);
    }
    let mut out = Vec::new();
    for versions in programs.into_values() {
        let versions: Vec<Named<'_>> = versions.into_values().collect();
        for [from, to] in versions.array_windows() {
            out.extend(compare_versions(from, to));
        }
    }
    out
}

/// Splits a version into its prefix and its numbers.
fn parse_version(version: &str) -> (String, Vec<u64>) {
    let begin = version.find(|c: char| c.is_ascii_digit()).unwrap_or(version.len());
    let (line, rest) = version.split_at(begin);
    let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    (line.to_string(), numbers.collect())
}

type Named<'a> = BTreeMap<&'a str, &'a Case>;

fn compare_versions(before: &Named<'_>, after: &Named<'_>) -> Option<Changes> {
    let (from, to) = (before.values().next()?, after.values().next()?);
    let only = |a: &Named<'_>, b: &Named<'_>| {
        a.keys().filter(|k| !b.contains_key(*k)).map(|k| k.to_string()).collect()
    };
    let mut out = Changes {
        agent: from.agent.clone(),
        from: from.version.clone(),
        to: to.version.clone(),
        only_before: only(before, after),
        only_after: only(after, before),
        ..Changes::default()
    };
    let mut replays = Vec::new();
    for (name, old) in before {
        let Some(new) = after.get(name) else { continue };
        out.compared += 1;
        let found = replay(old, new);
        replays.push(found.iter().cloned().collect::<BTreeSet<String>>());
        out.same += usize::from(found.is_empty());
        out.cases.insert(name.to_string(), found);
    }
    // Differences that all cases share are reported once.
    if let [first, second, rest @ ..] = replays.as_slice() {
        let common = rest.iter().fold(first & second, |all, one| &all & one);
        let order = out.cases.values().flatten();
        out.everywhere =
            order.filter(|l| common.contains(*l)).take(common.len()).cloned().collect();
        out.cases.values_mut().for_each(|lines| lines.retain(|l| !common.contains(l)));
    }
    out.cases.retain(|_, lines| !lines.is_empty());
    Some(out)
}

fn replay(old: &Case, new: &Case) -> Vec<String> {
    let mut out = members("", &program(old), &program(new));
    if user_messages(old) != user_messages(new) {
        out.push("the user says something else, so the requests are not compared".into());
        return out;
    }
    let (before, after) = (old.requests.len(), new.requests.len());
    out.extend(members("requests", &json!(before), &json!(after)));
    let pairs = old.requests.iter().zip(&new.requests).enumerate();
    let differ: Vec<(String, String)> = pairs
        .filter_map(|(i, (a, b))| {
            let (mut a, mut b) = (request(old, a), request(new, b));
            // Not every recording contains the time of a summary request.
            if a["phase"].is_null() || b["phase"].is_null() {
                (a["phase"], b["phase"]) = (Value::Null, Value::Null);
            }
            let found = members("", &a, &b);
            let first = found.iter().find(|line| !line.starts_with("items"));
            Some(((i + 1).to_string(), first.or(found.first())?.clone()))
        })
        .collect();
    if let Some((first, how)) = differ.first() {
        let numbers: Vec<&str> = differ.iter().map(|(n, _)| n.as_str()).collect();
        let both = before.min(after);
        out.push(format!("{} of {both} requests differ: {}", differ.len(), few(&numbers)));
        out.push(format!("first, request {first}: {how}"));
    }
    out
}

/// Returns the settings of a program, and the sizes of its texts and tools.
fn program(case: &Case) -> Value {
    let sizes: BTreeMap<_, _> = case.constants.iter().map(|(n, c)| (n, c.bytes())).collect();
    let mut fixed: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for piece in &case.fixed {
        let piece = json!(piece);
        let words = ["kind", "role", "for"].map(|name| piece[name].as_str());
        let size = if piece["bytes"].is_null() { &piece["count"] } else { &piece["bytes"] };
        let words: Vec<&str> = words.into_iter().flatten().collect();
        fixed.entry(words.join(" ")).or_default().push(size.clone());
    }
    json!({"settings": case.settings, "constants": sizes, "fixed": fixed})
}

/// Returns a request without the fixed pieces at its beginning, the numbers of its messages, and
/// the sizes of the program's texts.
fn request(case: &Case, request: &CaseRequest) -> Value {
    let head = |i: &&CaseItem| i.constant && matches!(i.kind, BlockKind::Base | BlockKind::Context);
    let items = case.items_of(request).skip_while(head).map(|item| match item.constant {
        true => json!({"kind": item.kind, "role": item.role}),
        false => json!(CaseItem { msg: None, derived: None, ..item.clone() }),
    });
    let mut out = json!(request);
    out["items"] = items.collect();
    out
}

fn user_messages(case: &Case) -> Vec<&CaseEvent> {
    let of_user = |e: &&CaseEvent| matches!(e, CaseEvent::User { .. } | CaseEvent::Compact { .. });
    case.events.iter().filter(of_user).collect()
}

/// Returns the members that differ, at any depth.
fn members(at: &str, old: &Value, new: &Value) -> Vec<String> {
    match (old, new) {
        _ if old == new => vec![],
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let inner = |k: &str| if at.is_empty() { k.into() } else { format!("{at}.{k}") };
            names.into_iter().flat_map(|k| members(&inner(k), &old[k], &new[k])).collect()
        }
        (Value::Array(a), Value::Array(b)) => (0..a.len().max(b.len()))
            .flat_map(|i| members(&format!("{at}[{i}]"), &old[i], &new[i]))
            .collect(),
        _ => {
            let text = |v: &Value| if v.is_null() { "not given".into() } else { v.to_string() };
            let (a, b) = shorten(&text(old), &text(new));
            vec![format!("{at}: {a} → {b}")]
        }
    }
}

fn few(names: &[&str]) -> String {
    match names.len().checked_sub(MAX_NAMED) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MAX_NAMED].join(", ")),
    }
}

impl std::fmt::Display for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Changes { agent, from, to, compared, same, .. } = self;
        writeln!(f, "{agent} {from} → {to}: {same} of {compared} cases are the same")?;
        for line in &self.everywhere {
            writeln!(f, "  in every session: {line}")?;
        }
        for (name, lines) in &self.cases {
            for line in lines {
                writeln!(f, "  {name}: {line}")?;
            }
        }
        for (names, version) in [(&self.only_before, from), (&self.only_after, to)] {
            if !names.is_empty() {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                writeln!(f, "  only of {version}: {}", few(&names))?;
            }
        }
        Ok(())
    }
}
