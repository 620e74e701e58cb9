//! Resolves `extends` in a description: keys of the description replace those of the extended one,
//! and `[values]` define placeholders for all its strings.

use std::path::{Path, PathBuf};

use ctxbench_core::{files, toml_file};
use serde::de::DeserializeOwned;
use toml::de::DeTable;
use toml::{Table, Value};

use super::agent::AgentError;
use super::template::{PLACEHOLDERS, replace};

/// Maximum depth of `extends`.
const MAX_DEPTH: usize = 8;

/// Returns the text of a built-in description.
type Named<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// Parses a description and those that it extends. `folder` is the folder of its file.
pub(super) fn read<T: DeserializeOwned>(
    file: &str,
    toml: &str,
    folder: Option<&Path>,
    named: Named<'_>,
) -> Result<T, String> {
    let mut texts = Vec::new();
    match table(file, toml, folder, named, &mut texts)? {
        // Without `extends` the file is parsed directly, so that errors have a line.
        None => toml_file::read(file, toml).map_err(|e| e.to_string()),
        Some(whole) => whole.try_into().map_err(|e| misfit(file, &e, &texts)),
    }
}

/// Texts of all files with their names, the extending ones first.
type Texts = Vec<(String, String)>;

/// Formats an error with the file and line that cause it.
fn misfit(file: &str, e: &toml::de::Error, texts: &Texts) -> String {
    let (told, shown) = (toml_file::describe(e, ""), e.to_string());
    let path = shown.lines().find_map(|l| l.strip_prefix("in `")?.strip_suffix('`'));
    // For an unknown key the path leads to its table.
    let unknown = e.message().strip_prefix("unknown field `").and_then(|m| m.split('`').next());
    let keys: Vec<&str> = path.into_iter().flat_map(|p| p.split('.')).chain(unknown).collect();
    let said = match keys.last() {
        Some(_) if told.starts_with("it ") => format!("{}: {told}", keys.join(".")),
        _ => told,
    };
    let place = texts.iter().find_map(|(file, text)| Some((file, line_of(text, &keys)?)));
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

/// Returns the merged tables. `None` without `extends` and `values`.
fn table(
    file: &str,
    toml: &str,
    folder: Option<&Path>,
    named: Named<'_>,
    texts: &mut Texts,
) -> Result<Option<Table>, String> {
    let own = parsed(file, toml)?;
    texts.push((file.to_string(), toml.to_string()));
    if !["extends", "values"].iter().any(|name| own.contains_key(*name)) {
        return Ok(None);
    }
    let mut whole = joined(file, own, folder, named, MAX_DEPTH, texts)?;
    let Some(values) = whole.remove("values") else { return Ok(Some(whole)) };
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
    Ok(Some(whole))
}

fn parsed(file: &str, toml: &str) -> Result<Table, String> {
    toml_file::read(file, toml).map_err(|e| e.to_string())
}

fn joined(
    file: &str,
    mut own: Table,
    folder: Option<&Path>,
    named: Named<'_>,
    depth: usize,
    texts: &mut Texts,
) -> Result<Table, String> {
    let Some(extends) = own.remove("extends") else { return Ok(own) };
    let Value::String(extends) = extends else {
        return Err(format!(
            "{file}: `extends` must be a string: a built-in agent, or a TOML file in the same folder"
        ));
    };
    let wrong = |why: String| format!("{file}: extends = {extends:?}: {why}");
    if depth == 0 {
        return Err(wrong("the descriptions extend each other in a circle".into()));
    }
    let below = match named(&extends) {
        Some(text) => {
            texts.push((extends.clone(), text.to_string()));
            joined(&extends, parsed(&extends, text)?, None, named, depth - 1, texts)?
        }
        None if !extends.ends_with(".toml") => {
            return Err(wrong(AgentError::Unknown(extends.clone()).to_string()));
        }
        None => {
            let path = folder.map_or_else(|| PathBuf::from(&extends), |f| f.join(&extends));
            let file = path.display().to_string();
            let text = files::read_text(&path).map_err(|e| wrong(format!("{file}: {e}")))?;
            let own = parsed(&file, &text)?;
            texts.push((file.clone(), text));
            joined(&file, own, path.parent(), named, depth - 1, texts)?
        }
    };
    Ok(over(below, own))
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

    #[test]
    fn table_with_extends_overrides_keys() {
        let own = "extends = \"base\"\nname = \"b\"\nenv.A = \"2\"\nvalues.kind = \"other\"";
        let got = table("f", own, None, &named, &mut vec![]).unwrap().unwrap();
        let want = "name = \"b\"\nlist = [\"other {url}\"]\n[env]\nA = \"2\"\nB = \"other\"";
        assert_eq!(got, want.parse().unwrap());
        let plain = table("f", BASE, None, &named, &mut vec![]).unwrap().unwrap();
        assert_eq!(plain["env"]["B"].as_str(), Some("plain"));
    }

    #[test]
    fn table_extends_file_in_same_folder() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.toml"), "extends = \"base\"\nname = \"b\"").unwrap();
        let own = "extends = \"b.toml\"";
        let got = table("f", own, Some(dir.path()), &named, &mut vec![]).unwrap().unwrap();
        assert_eq!(got["name"].as_str(), Some("b"));
    }

    #[test]
    fn table_with_invalid_extends_is_an_error() {
        let error = |text: &str| table("f", text, None, &named, &mut vec![]).unwrap_err();
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
        assert_eq!(table("f", "a = 1", None, &named, &mut vec![]), Ok(None));
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
