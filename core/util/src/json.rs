//! JSON in the form of JavaScript's `JSON.stringify(JSON.parse(text))`: without spaces, with members
//! in their original order. Products that show or measure such a text use this form.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// A JSON value with ordered members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Json {
    Null,
    Bool(bool),
    #[serde(serialize_with = "write_number")]
    Number(Number),
    String(String),
    Array(Vec<Json>),
    #[serde(serialize_with = "write_members", deserialize_with = "read_members")]
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
        serde_json::to_string(self).expect("a JSON value always serialises")
    }
}

/// Writes whole numbers without a decimal point.
fn write_number<S: Serializer>(n: &Number, to: S) -> Result<S::Ok, S::Error> {
    let is_whole = |f: &f64| n.is_f64() && f.fract() == 0.0 && f.abs() < 1e21;
    match n.as_f64().filter(is_whole) {
        Some(whole) => to.serialize_i128(whole as i128),
        None => n.serialize(to),
    }
}

fn write_members<S: Serializer>(members: &[(String, Json)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(members.iter().map(|(name, value)| (name, value)))
}

fn read_members<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Json)>, D::Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, Json)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| map.next_entry().transpose()).collect()
        }
    }
    from.deserialize_map(Members)
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
