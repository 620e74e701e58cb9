//! Differences between the recorded versions of a program, case by case, as text.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::{Case, CaseEvent, CaseItem, CaseRequest, Constant, FixedPiece};
use ctxbench_core::block::BlockKind;
use ctxbench_core::request::Purpose;
use serde::Serialize;
use serde_json::{Map, Value, json};

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

/// The cases of a version by name.
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
    let mut out = members("settings", &json!(old.settings), &json!(new.settings));
    out.extend(members("constants", &sizes(old), &sizes(new)));
    out.extend(fixed(old, new));
    if user_messages(old) != user_messages(new) {
        out.push("the user says something else, so the requests are not compared".into());
        return out;
    }
    out.extend(requests(old, new));
    out
}

/// Returns the sizes of the constants, bytes.
fn sizes(case: &Case) -> Value {
    let size = |(name, constant): (&String, &Constant)| (name.clone(), json!(constant.bytes()));
    Value::Object(case.constants.iter().map(size).collect())
}

/// Returns the user messages.
fn user_messages(case: &Case) -> Vec<&CaseEvent> {
    let of_user = |e: &&CaseEvent| matches!(e, CaseEvent::User { .. } | CaseEvent::Compact { .. });
    case.events.iter().filter(of_user).collect()
}

/// Returns the members of an object that differ, at any depth.
fn members(at: &str, old: &Value, new: &Value) -> Vec<String> {
    match (old, new) {
        _ if old == new => vec![],
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let of = |o: &Map<String, Value>, k: &String| o.get(k).cloned().unwrap_or(Value::Null);
            let deeper = |k: &String| members(&format!("{at}.{k}"), &of(a, k), &of(b, k));
            names.into_iter().flat_map(deeper).collect()
        }
        _ => {
            let (a, b) = shorten(&json_text(old), &json_text(new));
            vec![format!("{at}: {a} → {b}")]
        }
    }
}

/// Returns the sizes of the fixed pieces.
fn fixed(old: &Case, new: &Case) -> Vec<String> {
    let sizes = |case: &Case| -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for f in &case.fixed {
            let (name, size, purpose) = match f {
                FixedPiece::Tools(t) => ("tools".to_string(), t.count.to_string(), t.purpose),
                FixedPiece::Base(t) | FixedPiece::Context(t) => {
                    let kind = if matches!(f, FixedPiece::Base(_)) { "base" } else { "context" };
                    let name = format!("{kind} ({})", word(&t.role));
                    (name, format!("{} bytes", json!(t.bytes)), t.purpose)
                }
            };
            let of = if purpose == Some(Purpose::Summary) { " of summary" } else { "" };
            all.entry(name + of).or_default().push(size);
        }
        all.into_iter().map(|(k, v)| (k, v.join(" + "))).collect()
    };
    let (before, after) = (sizes(old), sizes(new));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |m: &BTreeMap<String, String>, k: &String| m.get(k).map_or("none", |v| v).to_string();
    let pairs = names.into_iter().map(|k| (k, of(&before, k), of(&after, k)));
    pairs.filter(|(_, a, b)| a != b).map(|(k, a, b)| format!("{k}: {a} → {b}")).collect()
}

fn requests(old: &Case, new: &Case) -> Vec<String> {
    let mut out = Vec::new();
    let (before, after) = (old.requests.len(), new.requests.len());
    if before != after {
        out.push(format!("requests: {before} → {after}"));
    }
    let pairs = old.requests.iter().zip(&new.requests);
    let differ: Vec<(usize, String)> = pairs
        .enumerate()
        .filter_map(|(i, (a, b))| Some((i + 1, request((old, a), (new, b))?)))
        .collect();
    let Some((first, how)) = differ.first() else { return out };
    let numbers: Vec<String> = differ.iter().map(|(n, _)| n.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let both = before.min(after);
    out.push(format!("{} of {both} requests differ: {}", differ.len(), few(&numbers)));
    out.push(format!("first, request {first}: {how}"));
    out
}

/// Returns the difference between two requests, or `None` if they agree.
fn request((old, a): (&Case, &CaseRequest), (new, b): (&Case, &CaseRequest)) -> Option<String> {
    let (first, second) = (json!(a), json!(b));
    for field in ["purpose", "phase", "tools", "max_tokens", "params"] {
        let (x, y) = (&first[field], &second[field]);
        // Not every recording contains the time of a summary request.
        if x != y && (field != "phase" || !(x.is_null() || y.is_null())) {
            return Some(format!("{field} {} → {}", json_text(x), json_text(y)));
        }
    }
    let (x, y) = (items_after_fixed(old, a), items_after_fixed(new, b));
    let kinds = |items: &[&CaseItem]| items.iter().map(|i| word(&i.kind)).collect::<Vec<String>>();
    let (before, after) = (kinds(&x), kinds(&y));
    if before != after {
        return Some(format!("{} → {}", runs(&before), runs(&after)));
    }
    let (n, how) = x.iter().zip(&y).enumerate().find_map(|(i, (a, b))| Some((i, item(a, b)?)))?;
    Some(format!("item {n} after the constants ({}): {how}", before[n]))
}

/// Returns the items of a request after the fixed pieces, which are reported separately.
fn items_after_fixed<'a>(case: &'a Case, request: &'a CaseRequest) -> Vec<&'a CaseItem> {
    let head = |i: &&CaseItem| i.constant && matches!(i.kind, BlockKind::Base | BlockKind::Context);
    case.items_of(request).skip_while(head).collect()
}

/// Returns the difference between two items, except for their number and the size of a constant.
fn item(a: &CaseItem, b: &CaseItem) -> Option<String> {
    let constant = a.constant && b.constant;
    let (a, b) = (json!(a), json!(b));
    let names = ["role", "id", "name", "cache", "bytes", "text", "sha256", "parts", "transcript"];
    let found = names.into_iter().find(|n| a[*n] != b[*n] && !(constant && *n == "bytes"))?;
    let (x, y) = shorten(&a[found].to_string(), &b[found].to_string());
    Some(match found {
        "sha256" => "another text of the same size".into(),
        _ => format!("{found} {x} → {y}"),
    })
}

/// Returns the word for a kind or role in a file.
fn word(v: &impl Serialize) -> String {
    json!(v).as_str().unwrap_or("?").to_string()
}

fn json_text(v: &Value) -> String {
    if v.is_null() { "not given".into() } else { v.to_string() }
}

/// Joins kinds of items, with a count for repeated ones.
fn runs(kinds: &[String]) -> String {
    let run = |r: &[String]| match r.len() {
        1 => r[0].clone(),
        n => format!("{n} {}", r[0]),
    };
    let all: Vec<String> = kinds.chunk_by(|a, b| a == b).map(run).collect();
    format!("[{}]", all.join(", "))
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
