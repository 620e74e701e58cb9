use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::scenario::expect::CHECKS;

/// Reads a schema that is checked in.
fn schema(name: &str) -> Value {
    let path = format!("{}/../docs/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_string).collect()
}

/// Follows references from a subschema.
fn resolve<'a>(root: &'a Value, at: &'a Value) -> Option<&'a Value> {
    root.pointer(at["$ref"].as_str()?.strip_prefix('#')?)
}

/// Returns every property that a subschema names directly, by reference, or in one of its
/// alternatives.
fn names(root: &Value, at: &Value) -> BTreeSet<String> {
    let mut out: BTreeSet<String> =
        at["properties"].as_object().into_iter().flat_map(|p| p.keys().cloned()).collect();
    if let Some(there) = resolve(root, at) {
        out.extend(names(root, there));
    }
    for inner in ["oneOf", "anyOf", "allOf"].iter().filter_map(|k| at[k].as_array()).flatten() {
        out.extend(names(root, inner));
    }
    if !at["items"].is_null() {
        out.extend(names(root, &at["items"]));
    }
    out
}

fn kind<'a>(variants: &'a Value, tag: &str) -> &'a Value {
    let found =
        variants.as_array().unwrap().iter().find(|v| v["properties"]["type"]["const"] == tag);
    found.unwrap_or_else(|| panic!("no schema for {tag}"))
}

/// Returns whether a value fits a subschema in types, constants, enumerations, required and known
/// properties.
fn fits(root: &Value, at: &Value, value: &Value) -> bool {
    let of_type = |t: &Value| match t.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => true,
    };
    let Some(at) = at.as_object() else { return at != &Value::Bool(false) };
    let empty = Map::new();
    let object = value.as_object().unwrap_or(&empty);
    let all = |key: &str| at.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    at.get("type")
        .is_none_or(|t| t.as_array().map_or_else(|| of_type(t), |list| list.iter().any(of_type)))
        && at.get("const").is_none_or(|c| c == value)
        && at.get("enum").is_none_or(|e| e.as_array().unwrap().contains(value))
        && at.get("minProperties").is_none_or(|n| object.len() as u64 >= n.as_u64().unwrap())
        && all("required").iter().all(|r| object.contains_key(r.as_str().unwrap()))
        && at
            .get("$ref")
            .is_none_or(|_| fits(root, resolve(root, &Value::Object(at.clone())).unwrap(), value))
        && object.iter().all(|(k, v)| match at.get("properties").and_then(|p| p.get(k)) {
            Some(p) => fits(root, p, v),
            None => at.get("additionalProperties").is_none_or(|a| fits(root, a, v)),
        })
        && value
            .as_array()
            .into_iter()
            .flatten()
            .all(|v| at.get("items").is_none_or(|i| fits(root, i, v)))
        && at.get("oneOf").is_none_or(|o| {
            o.as_array().unwrap().iter().filter(|s| fits(root, s, value)).count() == 1
        })
        && at
            .get("anyOf")
            .is_none_or(|o| o.as_array().unwrap().iter().any(|s| fits(root, s, value)))
}

/// Fields of a step that a session line lacks.
const OF_STEPS: &[&str] = &["file", "text"];

#[test]
fn steps_are_session_lines_without_other_keys() {
    let (scenario, session) = (schema("scenario"), schema("session"));
    assert_eq!(scenario["additionalProperties"], false);
    assert_eq!(names(&scenario, &scenario["properties"]["expect"]), set(CHECKS.iter().copied()));
    let steps = &scenario["properties"]["step"]["items"]["oneOf"];
    let lines = session["$defs"]["Entry"]["oneOf"].as_array().unwrap();
    assert_eq!(steps.as_array().unwrap().len(), lines.len());
    for line in lines {
        let tag = line["properties"]["type"]["const"].as_str().unwrap();
        let step = kind(steps, tag);
        assert_eq!(step["additionalProperties"], false, "{tag}");
        let more = &names(&scenario, step) - &names(&session, line);
        assert!(more.iter().all(|name| OF_STEPS.contains(&&**name)), "{tag}: {more:?}");
        assert!(names(&scenario, step).is_superset(&names(&session, line)), "{tag}");
    }
}

#[test]
fn the_built_in_session_has_only_known_fields_and_fits() {
    let s = schema("session");
    let text = crate::builtin::by_id("login-bug").unwrap().session.to_jsonl().unwrap();
    for (i, line) in text.lines().enumerate() {
        let value: Value = serde_json::from_str(line).unwrap();
        let tag = value["type"].as_str().unwrap();
        let at = if i == 0 {
            &s["$defs"]["First"]["oneOf"][0]
        } else {
            kind(&s["$defs"]["Entry"]["oneOf"], tag)
        };
        let known = names(&s, at);
        for field in value.as_object().unwrap().keys() {
            assert!(known.contains(field), "line {}: {field} of {tag} is not in the schema", i + 1);
        }
        assert!(fits(&s, &s, &value), "line {}: {line}", i + 1);
    }
    let fits = |json: &str| fits(&s, &s, &serde_json::from_str(json).unwrap());
    assert!(
        fits(r#"{"type":"user","id":"a","text":"x","mood":"good"}"#),
        "unknown fields are ignored"
    );
    assert!(!fits(r#"{"type":"user","id":"a"}"#));
    assert!(!fits(r#"{"type":"usr","id":"a","text":"x"}"#));
    assert!(!fits(r#"{"type":"session","version":2,"id":"a"}"#));
}

#[test]
fn the_built_in_scenarios_fit_their_schema() {
    let s = schema("scenario");
    let read = |id: &str| {
        let path = format!("{}/data/{id}/scenario.toml", env!("CARGO_MANIFEST_DIR"));
        let table: toml::Table = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        serde_json::to_value(table).unwrap()
    };
    for id in ["login-bug", "login-bug-tight"] {
        assert!(fits(&s, &s, &read(id)), "{id}");
    }
    let with = |path: &str, value: Value| {
        let mut v = read("login-bug");
        let (at, key) = path.rsplit_once('/').unwrap();
        v.pointer_mut(at).unwrap()[key] = value;
        fits(&s, &s, &v)
    };
    assert!(with("/scale", 0.5.into()));
    assert!(!with("/scales", 0.5.into()));
    assert!(!with("/step/2/txt", "x".into()));
    assert!(with("/expect", serde_json::json!({ "requests": 2, "codex": { "compactions": 1 } })));
    assert!(!with("/expect", serde_json::json!({ "request": 2 })));
    for (cell, fits) in [
        (serde_json::json!("completed"), true),
        (serde_json::json!({ "min": 1 }), true),
        (serde_json::json!({ "min": 1, "max": 2.5 }), true),
        (serde_json::json!({}), false),
        (serde_json::json!({ "mx": 1 }), false),
        (serde_json::json!({ "min": "a" }), false),
        (serde_json::json!(true), false),
        (serde_json::json!([1]), false),
    ] {
        let row = serde_json::json!({ "codex": { "compactions": cell } });
        assert_eq!(with("/expect", row), fits, "{cell}");
    }
}

#[cfg(feature = "schema")]
#[test]
fn the_checked_in_schemas_are_the_generated_ones() {
    let write =
        "run `cargo run -p ctxbench-scenarios --features schema --example schemas -- docs/schemas`";
    for (name, value) in
        [("session", crate::schema::session()), ("scenario", crate::schema::scenario())]
    {
        assert!(schema(name) == value.to_value(), "{name}: {write}");
    }
}
