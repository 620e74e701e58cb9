//! Differences between the recorded versions of a program, case by case, as text.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::Case;
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

/// Returns the changes from each recorded version of a program to the next. `cases` are whole
/// files.
pub fn changes(cases: &[Value]) -> Vec<Changes> {
    let word = |v: &Value, name: &str| v[name].as_str().unwrap_or("?").to_string();
    let mut programs: BTreeMap<(String, String), BTreeMap<Vec<u64>, String>> = BTreeMap::new();
    let mut named: BTreeMap<(String, String), BTreeMap<String, &Value>> = BTreeMap::new();
    for v in cases {
        let (agent, version) = (word(v, "agent"), word(v, "version"));
        let (line, numbers) = parse_version(&version);
        let versions = programs.entry((agent.clone(), line)).or_default();
        versions.insert(numbers, version.clone());
        named.entry((agent, version)).or_default().insert(word(v, "name"), v);
    }
    let mut out = Vec::new();
    for ((agent, _), versions) in programs {
        let versions: Vec<String> = versions.into_values().collect();
        for [from, to] in versions.array_windows() {
            let of = |version: &String| &named[&(agent.clone(), version.clone())];
            out.push(compare_versions(&agent, (from, of(from)), (to, of(to))));
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

type Named<'a> = (&'a String, &'a BTreeMap<String, &'a Value>);

fn compare_versions(agent: &str, (from, before): Named<'_>, (to, after): Named<'_>) -> Changes {
    let only = |a: &BTreeMap<String, &Value>, b: &BTreeMap<String, &Value>| {
        a.keys().filter(|k| !b.contains_key(*k)).cloned().collect()
    };
    let mut out = Changes {
        agent: agent.to_string(),
        from: from.clone(),
        to: to.clone(),
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
        out.cases.insert(name.clone(), found);
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
    out
}

fn replay(old: &Value, new: &Value) -> Vec<String> {
    let mut out = members("settings", &old["settings"], &new["settings"]);
    out.extend(members("constants", &old["constants"], &new["constants"]));
    out.extend(fixed(&old["fixed"], &new["fixed"]));
    if user_messages(old) != user_messages(new) {
        out.push("the user says something else, so the requests are not compared".into());
        return out;
    }
    let case = |v: &Value| serde_json::from_value::<Case>(v.clone()).ok();
    if let (Some(a), Some(b)) = (case(old), case(new)) {
        out.extend(requests(&a, &b));
    }
    out
}

/// Returns the user messages.
fn user_messages(v: &Value) -> Vec<&Value> {
    let events = v["events"].as_array().into_iter().flatten();
    events.filter(|e| e["type"] == "user" || e["type"] == "compact").collect()
}

/// Returns the members of an object that differ, at any depth.
fn members(at: &str, old: &Value, new: &Value) -> Vec<String> {
    match (old, new) {
        _ if old == new => vec![],
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let of = |o: &Map<String, Value>, k: &String| o.get(k).cloned().unwrap_or(Value::Null);
            let deeper = |k: &String| members(&format!("{at}.{k}"), &of(a, k), &of(b, k));
            names.into_iter().filter(|k| *k != "placeholder").flat_map(deeper).collect()
        }
        _ => {
            let told = |v: &Value| if v.is_null() { "not given".into() } else { v.to_string() };
            let (a, b) = shorten(&told(old), &told(new));
            vec![format!("{at}: {a} → {b}")]
        }
    }
}

/// Returns the sizes of the fixed pieces.
fn fixed(old: &Value, new: &Value) -> Vec<String> {
    let sizes = |v: &Value| -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for f in v.as_array().into_iter().flatten() {
            let purpose = f["for"].as_str().filter(|p| *p == "summary").map(|p| format!(" of {p}"));
            let kind = f["kind"].as_str().unwrap_or("?");
            let role = f["role"].as_str().map(|r| format!(" ({r})")).unwrap_or_default();
            let name = format!("{kind}{role}{}", purpose.unwrap_or_default());
            let size = match f.get("count") {
                Some(count) => count.to_string(),
                None => format!("{} bytes", f["bytes"]),
            };
            all.entry(name).or_default().push(size);
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
fn request((old, a): (&Case, &Value), (new, b): (&Case, &Value)) -> Option<String> {
    for field in ["purpose", "phase", "tools", "max_tokens", "params"] {
        let (x, y) = (a.get(field), b.get(field));
        // Not every recording contains the time of a summary request.
        if x != y && (field != "phase" || (x.is_some() && y.is_some())) {
            let told = |v: Option<&Value>| v.map_or("not given".to_string(), Value::to_string);
            return Some(format!("{field} {} → {}", told(x), told(y)));
        }
    }
    let (x, y) = (items_after_fixed(old, a), items_after_fixed(new, b));
    let kinds = |items: &[&Value]| {
        let kind = |i: &&Value| i["kind"].as_str().unwrap_or("?").to_string();
        items.iter().map(kind).collect::<Vec<_>>()
    };
    let (before, after) = (kinds(&x), kinds(&y));
    if before != after {
        return Some(format!("{} → {}", runs(&before), runs(&after)));
    }
    let (n, how) = x.iter().zip(&y).enumerate().find_map(|(i, (a, b))| Some((i, item(a, b)?)))?;
    Some(format!("item {n} after the constants ({}): {how}", before[n]))
}

/// Returns the items of a request after the fixed pieces, which are reported separately.
fn items_after_fixed<'a>(case: &'a Case, request: &'a Value) -> Vec<&'a Value> {
    let head = |i: &&Value| {
        i["constant"] == true && matches!(i["kind"].as_str(), Some("base" | "context"))
    };
    case.items_of(request).skip_while(head).collect()
}

/// Returns the difference between two items, except for their number and the size of a constant.
fn item(a: &Value, b: &Value) -> Option<String> {
    let constant = a["constant"] == true && b["constant"] == true;
    let names = ["role", "id", "name", "cache", "bytes", "text", "sha256", "parts", "transcript"];
    let found = names.into_iter().find(|n| a[*n] != b[*n] && !(constant && *n == "bytes"))?;
    let (x, y) = shorten(&a[found].to_string(), &b[found].to_string());
    Some(match found {
        "sha256" => "another text of the same size".into(),
        _ => format!("{found} {x} → {y}"),
    })
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
