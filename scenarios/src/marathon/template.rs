//! Text fragments with `%name%` holes, so that TypeScript stays readable in its own file.

use std::collections::BTreeMap;

const FRAGMENTS: &str = include_str!("../../data/login-bug-marathon/fragments.txt");
const FILES: &str = include_str!("../../data/login-bug-marathon/files.txt");

/// Splits a data file at its `#### name` lines.
pub fn sections(text: &'static str) -> BTreeMap<&'static str, &'static str> {
    text.split("#### ")
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('\n').expect("a section has a name line"))
        .collect()
}

pub struct Fragments(BTreeMap<&'static str, &'static str>);

impl Fragments {
    pub fn load() -> Self {
        Self(sections(FRAGMENTS))
    }

    pub fn fill(&self, name: &str, vars: &Vars) -> String {
        vars.fill(self.0.get(name).expect("the fragment exists"))
    }
}

/// Hand-written files of the shop, by path.
pub fn written_files() -> BTreeMap<&'static str, &'static str> {
    sections(FILES)
        .into_iter()
        .map(|(path, text)| (path, text.strip_suffix('\n').unwrap_or(text)))
        .collect()
}

#[derive(Clone, Default)]
pub struct Vars(BTreeMap<String, String>);

impl Vars {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Replaces the holes; a `%` that starts no known hole stays as it is.
    pub fn fill(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len() * 2);
        let mut rest = template;
        while let Some(start) = rest.find('%') {
            out.push_str(&rest[..start]);
            let after = &rest[start + 1..];
            let hole =
                after.find('%').and_then(|end| self.0.get(&after[..end]).map(|value| (value, end)));
            match hole {
                Some((value, end)) => {
                    out.push_str(value);
                    rest = &after[end + 1..];
                }
                None => {
                    out.push('%');
                    rest = after;
                }
            }
        }
        out + rest
    }
}
