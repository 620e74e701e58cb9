//! Resolves `extends` in a description: keys of the description replace those of the extended one,
//! and `[values]` define placeholders for all its strings.

use std::path::Path;

use ctxbench_util::{files, toml_file};
use serde::de::DeserializeOwned;
use toml::de::DeTable;
use toml::{Table, Value};

use super::agent::AgentError;
use super::template::{PLACEHOLDERS, replace};

/// Maximum depth of `extends`.
const MAX_DEPTH: usize = 8;

/// Returns the text of a built-in description.
type Named<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// A description, as far as it is written in one file.
struct Layer {
    file: String,
    text: String,
    keys: Table,
}

/// Parses a description and those that it extends. `folder` is the folder of its file.
pub(super) fn read<T: DeserializeOwned>(
    file: &str,
    toml: &str,
    folder: Option<&Path>,
    named: Named<'_>,
) -> Result<T, String> {
    let layers = layers(file, toml, folder, named)?;
    match &layers[..] {
        // Without `extends` the file is parsed directly, so that errors have a line.
        [only] if !only.keys.contains_key("values") => {
            toml_file::read(file, toml).map_err(|e| e.to_string())
        }
        _ => merged(file, &layers)?.try_into().map_err(|e| misfit(file, &e, &layers)),
    }
}

/// Formats an error with the file and line that cause it.
fn misfit(file: &str, e: &toml::de::Error, layers: &[Layer]) -> String {
    let (told, shown) = (toml_file::describe(e, ""), e.to_string());
    let path = shown.lines().find_map(|l| l.strip_prefix("in `")?.strip_suffix('`'));
    // For an unknown key the path leads to its table.
    let unknown = e.message().strip_prefix("unknown field `").and_then(|m| m.split('`').next());
    let keys: Vec<&str> = path.into_iter().flat_map(|p| p.split('.')).chain(unknown).collect();
    let said = match keys.last() {
        Some(_) if told.starts_with("it ") => format!("{}: {told}", keys.join(".")),
        _ => told,
    };
    let place = layers.iter().find_map(|of| Some((&of.file, line_of(&of.text, &keys)?)));
    match place.filter(|_| !e.message().starts_with("missing field")) {
        Some((file, line)) => format!("{file}:{line}: {said}"),
        None => format!("{file} or a description it extends: {said}"),
    }
}

/// Returns the line of a key in tables.
fn line_of(text: &str, keys: &[&str]) -> Option<usize> {
    let (last, outer) = keys.split_last()?;
    let whole = DeTable::parse(text).ok()?;
    let mut table = whole.get_ref();
    for key in outer {
        table = table.get(*key)?.get_ref().as_table()?;
    }
    let (key, _) = table.get_key_value(*last)?;
    Some(toml_file::Lines::new(text).line_at(key.span().start))
}

/// Returns a description and those that it extends, the extending ones first, without `extends`.
fn layers(
    file: &str,
    toml: &str,
    folder: Option<&Path>,
    named: Named<'_>,
) -> Result<Vec<Layer>, String> {
    let mut layers: Vec<Layer> = Vec::new();
    let (mut file, mut text) = (file.to_string(), toml.to_string());
    let mut folder = folder.map(Path::to_path_buf);
    loop {
        let mut keys: Table = toml_file::read(&file, &text).map_err(|e| e.to_string())?;
        let extends = keys.remove("extends");
        layers.push(Layer { file: file.clone(), text, keys });
        let extends = match extends {
            None => return Ok(layers),
            Some(Value::String(extends)) => extends,
            Some(_) => {
                return Err(format!(
                    "{file}: `extends` must be a string: a built-in agent, or a TOML file in the \
                     same folder"
                ));
            }
        };
        let wrong = |why: String| format!("{file}: extends = {extends:?}: {why}");
        if layers.len() > MAX_DEPTH {
            return Err(wrong("the descriptions extend each other in a circle".into()));
        }
        (file, text, folder) = match named(&extends) {
            Some(text) => (extends, text.to_string(), None),
            None if !extends.ends_with(".toml") => {
                return Err(wrong(AgentError::Unknown(extends.clone()).to_string()));
            }
            None => {
                let path = folder.unwrap_or_default().join(&extends);
                let shown = path.display().to_string();
                let text = files::read_text(&path).map_err(|e| wrong(format!("{shown}: {e}")))?;
                (shown, text, path.parent().map(Path::to_path_buf))
            }
        };
    }
}

/// Returns the keys of all layers with their values filled in. `file` is the extending file.
fn merged(file: &str, layers: &[Layer]) -> Result<Table, String> {
    let mut whole = layers.iter().rev().fold(Table::new(), |b, of| over(b, of.keys.clone()));
    let Some(values) = whole.remove("values") else { return Ok(whole) };
    let Value::Table(values) = values else {
        return Err(format!("{file}: `values` must be a table of strings"));
    };
    for (name, value) in &values {
        let Value::String(text) = value else {
            return Err(format!("{file}: values.{name} must be a string"));
        };
        let letter = |c: char| c.is_ascii_lowercase() || c == '_';
        if PLACEHOLDERS.contains(&&**name) || name.is_empty() || !name.chars().all(letter) {
            return Err(format!(
                "{file}: values.{name}: use a name of lower-case letters and `_` other than {}",
                PLACEHOLDERS.join(", ")
            ));
        }
        for (_, v) in whole.iter_mut() {
            fill(v, name, text);
        }
    }
    Ok(whole)
}

/// Merges two tables. Other values of `above` replace those of `below`.
fn over(mut below: Table, above: Table) -> Table {
    for (name, value) in above {
        let value = match (below.remove(&name), value) {
            (Some(Value::Table(b)), Value::Table(a)) => Value::Table(over(b, a)),
            (_, value) => value,
        };
        below.insert(name, value);
    }
    below
}

fn fill(value: &mut Value, place: &str, text: &str) {
    match value {
        Value::String(s) => *s = replace(s, place, text),
        Value::Array(all) => all.iter_mut().for_each(|v| fill(v, place, text)),
        Value::Table(all) => all.iter_mut().for_each(|(_, v)| fill(v, place, text)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "name = \"a\"\nlist = [\"{kind} {url}\"]\n[env]\nA = \"1\"\nB = \"{kind}\"\n\
                        [values]\nkind = \"plain\"\n";

    fn named(name: &str) -> Option<&'static str> {
        match name {
            "base" => Some(BASE),
            "loop" => Some("extends = \"loop\""),
            _ => None,
        }
    }

    fn table(toml: &str, folder: Option<&Path>) -> Result<Table, String> {
        merged("f", &layers("f", toml, folder, &named)?)
    }

    #[test]
    fn table_with_extends_overrides_keys() {
        let own = "extends = \"base\"\nname = \"b\"\nenv.A = \"2\"\nvalues.kind = \"other\"";
        let got = table(own, None).unwrap();
        let want = "name = \"b\"\nlist = [\"other {url}\"]\n[env]\nA = \"2\"\nB = \"other\"";
        assert_eq!(got, want.parse().unwrap());
        let plain = table(BASE, None).unwrap();
        assert_eq!(plain["env"]["B"].as_str(), Some("plain"));
    }

    #[test]
    fn table_extends_file_in_same_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.toml"), "extends = \"base\"\nname = \"b\"").unwrap();
        let own = "extends = \"b.toml\"";
        let got = table(own, Some(dir.path())).unwrap();
        assert_eq!(got["name"].as_str(), Some("b"));
    }

    #[test]
    fn table_with_invalid_extends_is_an_error() {
        let error = |text: &str| table(text, None).unwrap_err();
        assert!(error("extends = \"loop\"").contains("in a circle"));
        assert!(error("extends = \"no.toml\"").contains("no.toml"));
        let near = error("extends = \"bse.toml\"");
        assert!(near.starts_with("f: extends = \"bse.toml\": bse.toml: "), "{near}");
        let near = error("extends = \"codx\"");
        assert!(
            near.contains("unknown agent `codx`") && near.contains("did you mean codex"),
            "{near}"
        );
        assert!(!near.contains("known are"), "{near}");
        assert!(error("extends = 3").contains("must be a string"));
        assert!(error("values.url = \"x\"").contains("values.url"));
        assert!(error("values.kind = 3").contains("values.kind must be a string"));
        assert!(error("a = ").starts_with("f:1: "));
        assert_eq!(table("a = 1", None), Ok("a = 1".parse().unwrap()));
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct TestDescription {
        name: String,
        list: Vec<String>,
        env: Env,
        size: Option<u64>,
        must: Option<bool>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Env {
        #[serde(rename = "A")]
        a: String,
        #[serde(rename = "B")]
        b: String,
    }

    #[test]
    fn read_error_has_line_of_its_file() {
        let error = |text: &str| read::<TestDescription>("f", text, None, &named).unwrap_err();
        for (own, said) in [
            (
                "\nsize = \"a\"",
                "f:3: size: it is the text \"a\"; expected a whole number from 0 on",
            ),
            ("env.A = 2", "f:2: env.A: it is 2; expected a string"),
            ("\n[env]\nC = \"x\"", "f:4: unknown key `C`; "),
            ("must = true\nnme = 1", "f:3: unknown key `nme`; did you mean name?"),
        ] {
            let told = error(&format!("extends = \"base\"\n{own}\n"));
            assert!(told.starts_with(said), "{told}");
        }
        assert!(read::<TestDescription>("f", "extends = \"base\"", None, &named).is_ok());
    }
}
