//! JSON Schemas of the two files that others write: session lines and scenarios.
//!
//! The session schema comes from the types of [`ctxbench_core::session`]. A scenario is read by
//! hand for the sake of its error messages; the schema of its steps is built from the tables of
//! this reader and from the session schema.

use ctxbench_core::schema::session_line;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::fields::{KINDS, KindFields};
use crate::scenario::expect::BOUNDS;
use crate::scenario::steps::{step_keys, text_field};

/// A scenario file, as far as it is not a session.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct ScenarioFile {
    /// Short name, unique in a run.
    #[schemars(length(min = 1))]
    id: String,
    /// A line for people.
    #[schemars(default)]
    title: String,
    /// Purpose of the scenario.
    #[schemars(default)]
    why: String,
    /// Mistake that it shows.
    #[schemars(default)]
    pitfall: String,
    /// References to the sources: codes such as `token-budgeting pitfall 7` and `failure mode 6`,
    /// or your own text.
    #[schemars(default)]
    cites: Vec<String>,
    /// `default` means: part of a run without arguments.
    #[schemars(default)]
    tags: Vec<String>,
    /// The model the session is meant for.
    model: Option<String>,
    /// Context window in tokens, when it differs from the model's.
    context_window: Option<u64>,
    /// Largest reply in tokens, when it differs from the model's.
    max_output: Option<u64>,
    /// Factor on the window and on every absolute token constant of every strategy; 1 or the
    /// extended scenario's when absent.
    #[schemars(extend("exclusiveMinimum" = 0))]
    scale: Option<f64>,
    /// A built-in scenario's id or the path of a scenario file; its steps and facts come first.
    extends: Option<String>,
    /// Events, in order.
    step: Option<Vec<Value>>,
    /// Facts that the session establishes, for retention.
    fact: Option<Vec<Value>>,
    /// Requests that the provider does not answer as usual; those of an extended scenario come
    /// first.
    fault: Option<Vec<crate::scenario::ProviderFault>>,
    /// Expected results.
    expect: Option<ExpectTable>,
}

/// Checks of the outcome; a table named after a strategy has checks of its row.
#[derive(JsonSchema)]
#[schemars(extend("additionalProperties" = row()))]
#[expect(dead_code, reason = "only its schema is used")]
struct ExpectTable {
    /// Model requests of the reference.
    requests: Option<u64>,
    /// Steps of the recorded path.
    steps: Option<u64>,
}

/// Checks of a strategy's row: a value for each column.
fn row() -> Value {
    let bounds: Map<String, Value> =
        BOUNDS.iter().map(|bound| (bound.to_string(), json!({ "type": "number" }))).collect();
    json!({
        "description": "The row of a strategy as it is labelled: columns of summary.csv.",
        "type": "object",
        "additionalProperties": { "anyOf": [
            { "description": "This number.", "type": "number" },
            { "description": "This word; n/a = no value.", "type": "string" },
            {
                "description": "A number within these bounds, one or both.",
                "type": "object",
                "properties": bounds,
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
