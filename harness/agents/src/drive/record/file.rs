//! Formats a case with one item, event or request per line, so that two versions can be compared.

use serde_json::{Map, Value, json};

use ctxbench_conform::Case;

pub(super) fn text(case: &Case) -> String {
    let all = json!(case);
    let lists = ["fixed", "events", "items", "requests"];
    let member = |name: &str| match lists.contains(&name) {
        true => {
            let list = all[name].as_array().into_iter().flatten();
            let lines: Vec<String> = list.map(|v| without_nulls(v).to_string()).collect();
            format!("[\n{}\n]", lines.join(",\n"))
        }
        false => without_nulls(&all[name]).to_string(),
    };
    let heads = ["kind", "agent", "version", "name", "shows", "settings", "constants"];
    let outcome = ["outcome"].into_iter().filter(|name| !all[name].is_null());
    let names = heads.into_iter().chain(lists).chain(outcome);
    let members: Vec<String> =
        names.map(|name| format!("{}:{}", json!(name), member(name))).collect();
    format!("{{\n{}\n}}\n", members.join(",\n"))
}

/// Returns a value without the members that are null, which files leave out.
fn without_nulls(v: &Value) -> Value {
    match v {
        Value::Object(o) => {
            let given = o.iter().filter(|(_, v)| !v.is_null());
            let given = given.map(|(k, v)| (k.clone(), without_nulls(v)));
            Value::Object(given.collect::<Map<String, Value>>())
        }
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
