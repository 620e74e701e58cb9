//! JSON in the form of JavaScript's `JSON.stringify(JSON.parse(text))`: without spaces, with members
//! in their original order. Products that show or measure such a text use this form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A JSON value with ordered members.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a text; `None` if it is not JSON.
    pub fn read(text: &str) -> Option<Json> {
        serde_json::from_str(text).ok()
    }

    /// Returns the members of an object; none for other values.
    pub fn members(&self) -> &[(String, Json)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// Returns the string of the last member with a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.members().iter().rev().find(|(k, _)| k == name)?.1 {
            Json::String(t) => Some(t),
            _ => None,
        }
    }

    /// Formats the value without spaces.
    pub fn write(&self) -> String {
        let mut out = String::new();
        self.push(&mut out);
        out
    }

    fn push(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            // JavaScript writes whole numbers without a decimal point.
            Json::Number(n) => match n.as_f64().filter(|f| n.is_f64() && f.fract() == 0.0) {
                Some(f) if f.abs() < 1e21 => out.push_str(&format!("{f:.0}")),
                _ => out.push_str(&n.to_string()),
            },
            Json::String(t) => push_text(t, out),
            Json::Array(list) => {
                out.push('[');
                for (i, v) in list.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    v.push(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (i, (k, v)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    push_text(k, out);
                    out.push(':');
                    v.push(out);
                }
                out.push('}');
            }
        }
    }
}

fn push_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a string always serialises"));
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Number(n.into()))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(Json::Number(n.into()))
    }

    fn visit_f64<E>(self, f: f64) -> Result<Json, E> {
        Ok(Number::from_f64(f).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, t: &str) -> Result<Json, E> {
        Ok(Json::String(t.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut out = Vec::new();
        while let Some(v) = list.next_element()? {
            out.push(v);
        }
        Ok(Json::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut out = Vec::new();
        while let Some(member) = map.next_entry()? {
            out.push(member);
        }
        Ok(Json::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_keeps_order_and_removes_spaces() {
        let text =
            "{ \"path\" : \"a b\",\n \"edits\": [ {\"old\": \"x\\u0041\\/\"}, 1.0, -2.5, true ] }";
        let json = Json::read(text).unwrap();
        assert_eq!(json.write(), r#"{"path":"a b","edits":[{"old":"xA/"},1,-2.5,true]}"#);
        assert_eq!(json.text("path"), Some("a b"));
        assert_eq!(json.members().len(), 2);
    }

    #[test]
    fn read_rejects_invalid_json() {
        assert_eq!(Json::read("{\"path\": "), None);
        assert_eq!(Json::read("[1] 2"), None);
        assert_eq!(Json::read("null").unwrap().members(), []);
    }
}
