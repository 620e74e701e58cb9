use std::collections::BTreeSet;

use serde_json::{Map, Value};

fn schema(name: &str) -> Value {
    let path = format!("{}/../docs/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

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

/// Lines that no built-in session has.
const RECORDED: &str = r#"{"type":"clear"}
{"type":"recorded_call","usage":{"input":10,"output":8,"cache_read":49204,"cache_write":1739,"call_id":"c","call_alias":"d","call_in":"t","told_usd":0.0357},"model":"claude-opus-4-5","at":585427}
{"type":"recorded_compaction","pre_tokens":175004,"summary":"Checkpoint","trigger":"manual"}"#;

#[test]
fn the_built_in_sessions_have_only_known_fields_and_fit() {
    let s = schema("session");
    let mut seen = BTreeSet::new();
    let written = |id: &&str| crate::builtin::by_id(id).unwrap().session.to_jsonl().unwrap();
    for text in crate::builtin::IDS.iter().map(written).chain([RECORDED.into()]) {
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let tag = value["type"].as_str().unwrap();
            let part = if tag == "session" { "First" } else { "Entry" };
            let known = names(&s, kind(&s["$defs"][part]["oneOf"], tag));
            for field in value.as_object().unwrap().keys() {
                assert!(known.contains(field), "{field} of {tag} is not in the schema");
            }
            assert!(fits(&s, &s, &value), "{line}");
            seen.insert(tag.to_string());
        }
    }
    let lines = s["$defs"]["Entry"]["oneOf"].as_array().unwrap().len() + 1;
    assert_eq!(seen.len(), lines, "{seen:?}");
    let fits = |json: &str| fits(&s, &s, &serde_json::from_str(json).unwrap());
    // Unknown fields are ignored.
    assert!(fits(r#"{"type":"user","id":"a","text":"x","mood":"good"}"#));
    assert!(!fits(r#"{"type":"user","id":"a"}"#));
    assert!(!fits(r#"{"type":"usr","id":"a","text":"x"}"#));
    assert!(!fits(r#"{"type":"session","version":2,"id":"a"}"#));
}
