//! A description that goes on with another one: `extends` names it, what stands beside that takes
//! the place of what it says, and `[values]` fill places of its own in all texts.

use std::path::{Path, PathBuf};

use ctxbench_core::{files, toml_file};
use serde::de::DeserializeOwned;
use toml::de::DeTable;
use toml::{Table, Value};

use super::agent::AgentError;
use super::fill::{PLACES, put};

/// So many descriptions may go on with each other.
const DEEPEST: usize = 8;

/// The text of a description that comes with the project.
type Named<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// A description with all that it goes on with; the folder is that of its file.
pub(super) fn read<T: DeserializeOwned>(
    file: &str,
    toml: &str,
    folder: Option<&Path>,
    named: Named<'_>,
) -> Result<T, String> {
    let mut texts = Vec::new();
    match table(file, toml, folder, named, &mut texts)? {
        // What goes on with nothing is read where it stands: an error says the line.
        None => toml_file::read(file, toml).map_err(|e| e.to_string()),
        Some(whole) => whole.try_into().map_err(|e| misfit(file, &e, &texts)),
    }
}

/// The texts that a description is joined of, each with its file: the outermost first.
type Texts = Vec<(String, String)>;

/// What does not fit, with the line at which the outermost of the files says it.
fn misfit(file: &str, e: &toml::de::Error, texts: &Texts) -> String {
    let (told, shown) = (toml_file::describe(e, ""), e.to_string());
    let path = shown.lines().find_map(|l| l.strip_prefix("in `")?.strip_suffix('`'));
    // Of an unknown key the path leads to its table only.
    let unknown = e.message().strip_prefix("unknown field `").and_then(|m| m.split('`').next());
    let keys: Vec<&str> = path.into_iter().flat_map(|p| p.split('.')).chain(unknown).collect();
    let said = match keys.last() {
        Some(_) if told.starts_with("it ") => format!("{}: {told}", keys.join(".")),
        _ => told,
    };
    let place = texts.iter().find_map(|(file, text)| Some((file, line_of(text, &keys)?)));
    match place.filter(|_| !e.message().starts_with("missing field")) {
        Some((file, line)) => format!("{file}:{line}: {said}"),
        None => format!("{file}, with what it extends: {said}"),
    }
}

/// The line of a key within tables.
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

/// The joined tables; `None` = it goes on with nothing.
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
    let mut whole = joined(file, own, folder, named, DEEPEST, texts)?;
    let Some(values) = whole.remove("values") else { return Ok(Some(whole)) };
    let Value::Table(values) = values else {
        return Err(format!("{file}: `values` must be a table of texts"));
    };
    for (name, value) in &values {
        let Value::String(text) = value else {
            return Err(format!("{file}: values.{name} must be a text"));
        };
        let letter = |c: char| c.is_ascii_lowercase() || c == '_';
        if PLACES.contains(&&**name) || name.is_empty() || !name.chars().all(letter) {
            return Err(format!(
                "{file}: values.{name}: a name of small letters and `_` that is none of {}",
                PLACES.join(", ")
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
    deepest: usize,
    texts: &mut Texts,
) -> Result<Table, String> {
    let Some(extends) = own.remove("extends") else { return Ok(own) };
    let Value::String(extends) = extends else {
        return Err(format!(
            "{file}: `extends` must be a text: an agent that comes with the project, or a TOML \
             file beside this one"
        ));
    };
    let wrong = |why: String| format!("{file}: extends = {extends:?}: {why}");
    if deepest == 0 {
        return Err(wrong("they go on with each other without an end".into()));
    }
    let below = match named(&extends) {
        Some(text) => {
            texts.push((extends.clone(), text.to_string()));
            joined(&extends, parsed(&extends, text)?, None, named, deepest - 1, texts)?
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
            joined(&file, own, path.parent(), named, deepest - 1, texts)?
        }
    };
    Ok(over(below, own))
}

/// A table with another one over it: tables are joined, anything else is replaced.
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
        Value::String(s) => *s = put(s, place, text),
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
    fn what_stands_beside_extends_is_said_instead() {
        let own = "extends = \"base\"\nname = \"b\"\nenv.A = \"2\"\nvalues.kind = \"other\"";
        let got = table("f", own, None, &named, &mut vec![]).unwrap().unwrap();
        let want = "name = \"b\"\nlist = [\"other {url}\"]\n[env]\nA = \"2\"\nB = \"other\"";
        assert_eq!(got, want.parse().unwrap());
        let plain = table("f", BASE, None, &named, &mut vec![]).unwrap().unwrap();
        assert_eq!(plain["env"]["B"].as_str(), Some("plain"));
    }

    #[test]
    fn a_file_may_go_on_with_a_file_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b.toml"), "extends = \"base\"\nname = \"b\"").unwrap();
        let own = "extends = \"b.toml\"";
        let got = table("f", own, Some(dir.path()), &named, &mut vec![]).unwrap().unwrap();
        assert_eq!(got["name"].as_str(), Some("b"));
    }

    #[test]
    fn errors_say_what_was_named() {
        let error = |text: &str| table("f", text, None, &named, &mut vec![]).unwrap_err();
        assert!(error("extends = \"loop\"").contains("without an end"));
        assert!(error("extends = \"no.toml\"").contains("no.toml"));
        let near = error("extends = \"bse.toml\"");
        assert!(near.starts_with("f: extends = \"bse.toml\": bse.toml: "), "{near}");
        let near = error("extends = \"codx\"");
        assert!(near.contains("no agent `codx`") && near.contains("did you mean codex"), "{near}");
        assert!(!near.contains("known are"), "{near}");
        assert!(error("extends = 3").contains("must be a text"));
        assert!(error("values.url = \"x\"").contains("values.url"));
        assert!(error("values.kind = 3").contains("values.kind must be a text"));
        assert!(error("a = ").starts_with("f:1: "));
        assert_eq!(table("f", "a = 1", None, &named, &mut vec![]), Ok(None));
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Form {
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
    fn what_does_not_fit_is_told_with_the_line_that_says_it() {
        let error = |text: &str| read::<Form>("f", text, None, &named).unwrap_err();
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
        assert!(read::<Form>("f", "extends = \"base\"", None, &named).is_ok());
    }
}
