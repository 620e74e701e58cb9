//! Placeholders in an agent's description, such as `{url}`.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values of the placeholders by name. A number may have a factor, such as `{window*0.5}`. Other
/// braces are literal, since settings are often JSON.
#[derive(Clone, Debug, Default)]
pub(super) struct Template(pub(super) BTreeMap<String, String>);

impl Template {
    pub(super) fn with<'a>(
        mut self,
        values: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Template {
        self.0.extend(values.into_iter().map(|(name, value)| (name.to_string(), value)));
        self
    }

    /// Replaces all placeholders. Placeholders in values are not replaced.
    pub(super) fn text(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, inside)) = rest.split_once('{') {
            out.push_str(before);
            match inside.split_once('}').and_then(|(name, after)| Some((self.value(name)?, after)))
            {
                Some((value, after)) => {
                    out.push_str(&value);
                    rest = after;
                }
                None => {
                    out.push('{');
                    rest = inside;
                }
            }
        }
        out + rest
    }

    fn value(&self, name: &str) -> Option<String> {
        if let Some(value) = self.0.get(name) {
            return Some(value.clone());
        }
        let (name, factor) = name.split_once('*')?;
        let product = self.0.get(name)?.parse::<f64>().ok()? * factor.parse::<f64>().ok()?;
        Some(product.to_string())
    }
}

/// Replaces a single placeholder.
pub(super) fn replace(text: &str, place: &str, value: &str) -> String {
    text.replace(&format!("{{{place}}}"), value)
}

/// Replaces one placeholder in every string of a JSON value.
pub(super) fn replace_in(value: &Value, place: &str, text: &str) -> Value {
    match value {
        Value::String(s) => replace(s, place, text).into(),
        Value::Array(all) => all.iter().map(|v| replace_in(v, place, text)).collect(),
        Value::Object(all) => {
            all.iter().map(|(k, v)| (k.clone(), replace_in(v, place, text))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_replaces_placeholders_and_keeps_json_braces() {
        let fill = Template::default().with(
            [
                ("url", "http://h:1"),
                ("model", "gpt-5.5"),
                ("window", "30000"),
                ("project", "/s/{url}"),
            ]
            .map(|(name, value)| (name, value.to_string())),
        );
        for (text, want) in [
            (
                "{\"a\": {\"url\": \"{url}/v1\"}, \"b\": {{model}}, \"w\": {window}}",
                "{\"a\": {\"url\": \"http://h:1/v1\"}, \"b\": {gpt-5.5}, \"w\": 30000}",
            ),
            ("{project} {none} {", "/s/{url} {none} {"),
            ("{window*0.5} {window*4.76837158203125e-7}", "15000 0.01430511474609375"),
            ("{url*2} {window*x} {none*2}", "{url*2} {window*x} {none*2}"),
        ] {
            assert_eq!(fill.text(text), want);
        }
        assert_eq!(replace("say {text}", "text", "{text} {url}"), "say {text} {url}");
    }
}
