//! Objects with a fixed order of members, whatever features serde_json is built with.

use serde_json::Value;

pub struct Object(String);

impl Object {
    pub fn new() -> Self {
        Self(String::from("{"))
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value: Value = value.into();
        self.raw(key, &value.to_string());
        self
    }

    pub fn with_raw(mut self, key: &str, json: &str) -> Self {
        self.raw(key, json);
        self
    }

    fn raw(&mut self, key: &str, json: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&Value::from(key).to_string());
        self.0.push(':');
        self.0.push_str(json);
    }

    pub fn end(self) -> String {
        self.0 + "}"
    }
}

pub fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}
