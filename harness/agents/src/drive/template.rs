//! Placeholders in an agent's description, such as `{url}`.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

/// Placeholders, numbers also with a factor such as `{window*0.5}`. Other braces are literal, since
/// settings are often JSON.
pub(super) const PLACEHOLDERS: &[&str] = &[
    "program",
    "scratch",
    "project",
    "home",
    "here",
    "url",
    "model",
    "window",
    "max_output",
    "text",
];

/// Values of the placeholders.
#[derive(Clone, Debug)]
pub(super) struct Template {
    values: Vec<(&'static str, String)>,
}

impl Template {
    /// Returns the values that are known before a drive: program, folder of the description, home.
    pub(super) fn before_drive(program: &Path, here: Option<&Path>, home: &Path) -> Template {
        let path = |p: &Path| p.display().to_string();
        let here = here.map(|h| ("here", path(h)));
        let always = [("program", path(program)), ("home", path(home))];
        Template { values: here.into_iter().chain(always).collect() }
    }

    pub(super) fn new(
        program: &Path,
        here: Option<&Path>,
        scratch: &Path,
        url: &str,
        model: &str,
        (window, max_output): (u64, u64),
    ) -> Template {
        let path = |p: &Path| p.display().to_string();
        let mut fill = Template::before_drive(program, here, &scratch.join("home"));
        fill.values.extend([
            ("scratch", path(scratch)),
            ("project", path(&scratch.join("project"))),
            ("url", url.to_string()),
            ("model", model.to_string()),
            ("window", window.to_string()),
            ("max_output", max_output.to_string()),
        ]);
        fill
    }

    /// Replaces all placeholders. Placeholders in values are not replaced.
    pub(super) fn text(&self, text: &str) -> String {
        let value = |name: &str| self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| &**v);
        let times = |(name, factor): (&str, &str)| {
            let product = value(name)?.parse::<f64>().ok()? * factor.parse::<f64>().ok()?;
            Some(Cow::Owned(product.to_string()))
        };
        replaced(text, &|place| {
            value(place).map(Cow::Borrowed).or_else(|| place.split_once('*').and_then(times))
        })
    }

    /// Returns the first name in braces that is not in [`PLACEHOLDERS`].
    pub(super) fn unknown(text: &str) -> Option<&str> {
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            rest = &rest[begin + 1..];
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_')?;
            if rest[end..].starts_with('}') && end > 0 && !PLACEHOLDERS.contains(&&rest[..end]) {
                return Some(&rest[..end]);
            }
        }
        None
    }
}

/// Replaces a single placeholder.
pub(super) fn replace(text: &str, place: &str, value: &str) -> String {
    replaced(text, &|name| (name == place).then_some(Cow::Borrowed(value)))
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

fn replaced<'a>(text: &str, value: &dyn Fn(&str) -> Option<Cow<'a, str>>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(begin) = rest.find('{') {
        out.push_str(&rest[..begin]);
        let found = rest[begin..].find('}').and_then(|end| {
            let name = &rest[begin + 1..begin + end];
            value(name).map(|v| (v, begin + end + 1))
        });
        match found {
            Some((v, after)) => {
                out.push_str(&v);
                rest = &rest[after..];
            }
            None => {
                out.push('{');
                rest = &rest[begin + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_replaces_placeholders_and_keeps_json_braces() {
        let fill = Template::new(
            Path::new("/bin/a"),
            Some(Path::new("/own")),
            Path::new("/s"),
            "http://h:1",
            "gpt-5.5",
            (30_000, 4_000),
        );
        let json = "{\"a\": {\"url\": \"{url}/v1\"}, \"b\": {{model}}, \"w\": {window}}";
        let want = "{\"a\": {\"url\": \"http://h:1/v1\"}, \"b\": {gpt-5.5}, \"w\": 30000}";
        assert_eq!(fill.text(json), want);
        assert_eq!(fill.text("{project} {here}/a {none} {"), "/s/project /own/a {none} {");
        assert_eq!(
            fill.text("{window*0.5} {window*4.76837158203125e-7}"),
            "15000 0.01430511474609375"
        );
        assert_eq!(fill.text("{url*2} {window*x} {none*2}"), "{url*2} {window*x} {none*2}");
    }

    #[test]
    fn replace_ignores_placeholders_in_values() {
        assert_eq!(replace("say {text}", "text", "{text} {url}"), "say {text} {url}");
    }

    #[test]
    fn unknown_returns_first_unknown_placeholder() {
        assert_eq!(Template::unknown("{program} {urll}"), Some("urll"));
        assert_eq!(Template::unknown("{\"url\": {}} {url} {Upper}"), None);
    }
}
