//! JSON Schemas of the two files that others write: session lines and scenarios.
//!
//! The session schema comes from the types of [`ctxbench_session`], that of a scenario from
//! the type of its file and, for its steps, from the session schema.

use ctxbench_session::schema::session_line;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::scenario::ScenarioFile;
use crate::scenario::steps::text_field;

/// Returns the schema of one line of a session file. Unknown fields are allowed.
pub fn session() -> Schema {
    session_line()
}

/// Returns the schema of a scenario file. Unknown fields are refused.
pub fn scenario() -> Schema {
    let lines = session().to_value();
    let mut out = schemars::schema_for!(ScenarioFile).to_value();
    let variants = lines["$defs"]["Entry"]["oneOf"].as_array().cloned().unwrap_or_default();
    let steps: Vec<Value> = variants.iter().map(|v| step(v, &lines)).collect();
    // A fact needs no type.
    let mut fact = steps.iter().find(|s| tag(s) == "fact").cloned().unwrap_or_default();
    if let Some(required) = fact["required"].as_array_mut() {
        required.retain(|name| name != "type");
    }
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

fn tag(schema: &Value) -> &str {
    schema["properties"]["type"]["const"].as_str().unwrap_or_default()
}

/// Returns the schema of one kind of step: the fields of the session line, and `file` if the text
/// can be in a separate file.
fn step(variant: &Value, lines: &Value) -> Value {
    let name = variant["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/"));
    let referred = name.map_or(&Value::Null, |n| &lines["$defs"][n]);
    let mut all = Map::new();
    let (mut required, mut choice) = (Vec::new(), Vec::new());
    for schema in [referred, variant] {
        all.extend(schema["properties"].as_object().cloned().unwrap_or_default());
        required.extend(schema["required"].as_array().cloned().unwrap_or_default());
        choice.extend(schema["anyOf"].as_array().cloned().unwrap_or_default());
    }
    let tag = tag(variant);
    let mut others: Vec<&str> = Vec::new();
    if let Some(field) = text_field(tag) {
        let description = format!("A file beside the scenario that holds `{field}`.");
        all.insert("file".into(), json!({ "description": description, "type": "string" }));
        others.push("file");
        if tag == "tool" {
            let description = "Another name of `output`.";
            all.insert("text".into(), json!({ "description": description, "type": "string" }));
            others.push("text");
        }
        if required.iter().any(|name| name == field) {
            required.retain(|name| name != field);
            choice.push(json!({ "required": [field] }));
        }
    }
    if !choice.is_empty() {
        choice.extend(others.iter().map(|name| json!({ "required": [name] })));
    }
    // Messages without an id get one by their place.
    required.retain(|name| !(matches!(tag, "user" | "assistant") && name == "id"));
    required.sort_by_key(|name| name != "type");
    let mut out = json!({
        "description": variant["description"],
        "type": "object",
        "properties": all,
        "additionalProperties": false,
        "required": required,
    });
    if !choice.is_empty() {
        out["anyOf"] = choice.into();
    }
    out
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
