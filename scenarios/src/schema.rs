//! JSON Schemas of the two files that others write: session lines and scenarios.
//!
//! The session schema comes from the types of [`ctxbench_session`], that of a scenario from
//! the type of its file. Steps are read by hand for the sake of their error messages; their schema
//! is built from the tables of this reader and from the session schema.

use ctxbench_session::schema::session_line;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::fields::{KINDS, KindFields};
use crate::scenario::ScenarioFile;
use crate::scenario::steps::{step_keys, text_field};

/// Checks of a strategy's row: a value for each column.
pub(crate) fn row() -> Value {
    json!({
        "description": "The row of a strategy as it is labelled: columns of summary.csv.",
        "type": "object",
        "additionalProperties": { "anyOf": [
            { "description": "This number.", "type": "number" },
            { "description": "This word; n/a = no value.", "type": "string" },
            {
                "description": "A number within these bounds, one or both.",
                "type": "object",
                "properties": { "min": { "type": "number" }, "max": { "type": "number" } },
                "additionalProperties": false,
                "minProperties": 1,
            },
        ] },
    })
}

/// Returns the schema of one line of a session file. Unknown fields are allowed.
pub fn session() -> Schema {
    session_line()
}

/// Returns the schema of a scenario file. Unknown fields are refused.
pub fn scenario() -> Schema {
    let lines = session().to_value();
    let mut out = schemars::schema_for!(ScenarioFile).to_value();
    let steps: Vec<Value> = KINDS.iter().map(|k| step(k, &lines, true)).collect();
    let fact =
        KINDS.iter().find(|k| k.tag == "fact").map(|k| step(k, &lines, false)).unwrap_or_default();
    out["title"] = json!("ctxbench scenario");
    out["description"] =
        json!("A scenario file (TOML): a session written by people, with the reason for it.");
    out["properties"]["step"]["items"] = json!({ "oneOf": steps });
    out["properties"]["fact"]["items"] = fact;
    out["anyOf"] = json!([{ "required": ["step"] }, { "required": ["extends"] }]);
    for name in
        ["Effect", "FactKind", "FileMode", "RecordedUsage", "SessionCall", "SessionPart", "Trigger"]
    {
        out["$defs"][name] = lines["$defs"][name].clone();
    }
    out["$defs"]["RecordedUsage"]["additionalProperties"] = json!(false);
    out["$defs"]["SessionCall"] = call(&out["$defs"]["SessionCall"]);
    out["$defs"]["SessionPart"] = strict_parts(&lines, &out["$defs"]["SessionCall"]);
    without_null(&mut out);
    Schema::try_from(out).expect("an object is a schema")
}

/// Returns the schema of one kind of step: the fields of the session line, and `file` if the text
/// can be in a separate file.
fn step(kind: &KindFields, lines: &Value, tagged: bool) -> Value {
    let mut all = Map::new();
    let mut description = Value::Null;
    for variant in lines["$defs"]["Entry"]["oneOf"].as_array().into_iter().flatten() {
        if variant["properties"]["type"]["const"] == kind.tag {
            description = variant["description"].clone();
            all = properties(variant, lines);
        }
    }
    if let Some(field) = text_field(kind.tag) {
        all.insert(
            "file".into(),
            json!({ "description": format!("A file beside the scenario that \
            holds `{field}`."), "type": "string" }),
        );
    }
    if kind.tag == "tool" {
        all.insert(
            "text".into(),
            json!({ "description": "Another name of `output`.", "type": "string" }),
        );
    }
    all.retain(|name, _| step_keys(kind).contains(&name.as_str()));
    // Messages without an id get one by their place.
    let given = |name: &str| matches!(kind.tag, "user" | "assistant") && name == "id";
    let mut required: Vec<&str> = if tagged { vec!["type"] } else { vec![] };
    let mut choice = Vec::new();
    for group in kind.required.iter().filter(|g| !g.iter().any(|f| given(f))) {
        let mut names = group.to_vec();
        if text_field(kind.tag).is_some_and(|f| group.contains(&f)) {
            names.push("file");
            if kind.tag == "tool" {
                names.push("text");
            }
        }
        match names.as_slice() {
            [one] => required.push(one),
            several => choice = several.iter().map(|n| json!({ "required": [n] })).collect(),
        }
    }
    let mut out = json!({
        "description": description,
        "type": "object",
        "properties": all,
        "additionalProperties": false,
        "required": required,
    });
    if !choice.is_empty() {
        out["anyOf"] = Value::Array(choice);
    }
    out
}

/// Returns the properties of a variant, including those of the type that it refers to.
fn properties(variant: &Value, lines: &Value) -> Map<String, Value> {
    let name = variant["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/"));
    let referred = name.and_then(|n| lines["$defs"][n]["properties"].as_object());
    let own = variant["properties"].as_object();
    referred.into_iter().chain(own).flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Returns the schema of a call with arguments that may also be written as a table.
fn call(of_session: &Value) -> Value {
    let mut out = of_session.clone();
    out["properties"]["arguments"] = json!({ "description": "Argument text, normally JSON; a table \
        becomes its JSON text.", "type": ["string", "object"] });
    out["additionalProperties"] = json!(false);
    out
}

fn strict_parts(lines: &Value, call: &Value) -> Value {
    let mut out = lines["$defs"]["SessionPart"].clone();
    for part in out["oneOf"].as_array_mut().into_iter().flatten() {
        if part["properties"]["type"]["const"] == "call" {
            let mut all = call["properties"].clone();
            all["type"] = part["properties"]["type"].clone();
            let required = ["type", "id", "name", "arguments"];
            *part = json!({ "description": part["description"], "type": "object", "properties": all, "required": required });
        }
        part["additionalProperties"] = json!(false);
    }
    out
}

/// Removes `null` from the types, because TOML has no null: a member that may be null in JSON is
/// absent.
fn without_null(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(without_null);
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    map.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(any)) = map.get("anyOf")
                && let [Value::Object(one), null] = any.as_slice()
                && *null == json!({ "type": "null" })
            {
                let one = one.clone();
                map.remove("anyOf");
                map.extend(one);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(without_null),
        _ => {}
    }
}
