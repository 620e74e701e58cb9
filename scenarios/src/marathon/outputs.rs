//! Outputs of the file tools, and the choice among the generated outputs of the others.

use super::domain::Entity;
use super::rng::Rng;
use super::tools::line_range;
use super::vfs::Vfs;
use super::{out_data, out_ops, out_tests};
use std::fmt::Write;

const GREP_LIMIT: usize = 70;

/// Output of a call whose body asks for a generated kind (`!kind words`), or the body itself.
pub fn generated(vfs: &mut Vfs, rng: &mut Rng, args: &str, output: &str) -> String {
    let Some(order) = output.strip_prefix('!') else {
        return output.to_owned();
    };
    let (order, body) = order.split_once('\n').unwrap_or((order, ""));
    let mut words = order.split(' ');
    let kind = words.next().unwrap_or("");
    let words: Vec<&str> = words.collect();
    let word = |index: usize| words.get(index).copied().unwrap_or("");
    let count = |index: usize| word(index).parse::<usize>().expect("a count");
    let extra: Vec<&str> = body.lines().collect();
    match kind {
        "test" => out_tests::run(vfs, rng, args, &extra),
        "tsc" => out_tests::type_check(vfs, &extra),
        "lint" => out_tests::lint(vfs, rng, count(0), &extra),
        "coverage" => out_tests::coverage(vfs, rng, word(0), &extra),
        "diff" => diff(vfs, word(0)),
        "stat" => stat(vfs),
        "commit" => commit(vfs, word(0), args),
        "log" => out_data::log(vfs, rng, count(0), &extra),
        "json" => out_data::json(vfs.entity(word(0)), rng, count(1), &extra),
        "rows" => out_data::rows(vfs.entity(word(0)), rng, count(1), &extra),
        "schema" => out_data::schema(vfs.entity(word(0)), &extra),
        "explain" => out_data::explain(vfs.entity(word(0)), rng, word(1), &extra),
        "build" => out_ops::build(vfs, rng, &extra),
        "ci" => out_ops::ci(vfs, rng, count(0), &extra),
        "gitlog" => out_ops::git_log(vfs, rng, count(0), &extra),
        "spans" => out_ops::spans(vfs, rng, count(0), &extra),
        "load" => out_ops::load(rng, count(0), &extra),
        other => panic!("the story asks for known outputs: {other}"),
    }
}

pub fn read(vfs: &Vfs, args: &str) -> String {
    let (path, range) = args.split_once(' ').unwrap_or((args, ""));
    let text = vfs.text(path);
    let (from, to) = if range.is_empty() { (1, usize::MAX) } else { line_range(range) };
    let mut out = String::with_capacity(text.len() * 2);
    for (index, line) in text.lines().enumerate() {
        if (from..=to).contains(&(index + 1)) {
            let _ = writeln!(out, "{:>5}\t{line}", index + 1);
        }
    }
    if to < text.lines().count() {
        let _ = writeln!(out, "({} lines in the file)", text.lines().count());
    }
    out
}

pub fn grep(vfs: &Vfs, args: &str) -> String {
    let (pattern, prefix) = args.split_once(" :: ").unwrap_or((args, ""));
    let needles: Vec<&str> = pattern.split('|').collect();
    let mut out = String::new();
    let mut hits = 0;
    for (path, text) in vfs.files.iter().filter(|(path, _)| path.starts_with(prefix)) {
        // Most files have no hit; one search of the whole text is cheaper than one per line.
        if !needles.iter().any(|needle| text.contains(needle)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if needles.iter().any(|needle| line.contains(needle)) {
                hits += 1;
                if hits <= GREP_LIMIT {
                    let _ = writeln!(out, "{path}:{}:{line}", index + 1);
                }
            }
        }
    }
    match hits {
        0 => "No matches.".to_owned(),
        more if more > GREP_LIMIT => format!("{out}({} more matches not shown)", more - GREP_LIMIT),
        _ => out,
    }
}

pub fn glob(vfs: &Vfs, pattern: &str) -> String {
    let parts: Vec<&str> = pattern.split('*').filter(|part| !part.is_empty()).collect();
    let found: Vec<&str> = vfs
        .files
        .keys()
        .filter(|path| {
            let mut rest = path.as_str();
            parts.iter().all(|part| match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
        })
        .map(String::as_str)
        .collect();
    if found.is_empty() { "No files.".to_owned() } else { found.join("\n") }
}

pub fn list(vfs: &Vfs, folder: &str) -> String {
    let mut out = String::new();
    for (path, text) in &vfs.files {
        if let Some(name) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) {
            let _ = writeln!(out, "{:>7}  {name}", text.len());
        }
    }
    out
}

/// The changed place with its surroundings, as editors show it.
pub fn edited(vfs: &Vfs, path: &str, line: usize, new: &str) -> String {
    let from = line.saturating_sub(4).max(1);
    let to = line + new.lines().count() + 3;
    format!("Edited {path} at line {line}.\n{}", read(vfs, &format!("{path} {from}-{to}")))
}

/// The columns that a listing of rows shows; a real terminal has no room for all.
pub fn shown_columns(entity: &Entity) -> Vec<String> {
    let parents = entity.parents.iter().map(|parent| format!("{parent}_id"));
    let fields = entity.fields.iter().map(|field| field.name.clone());
    std::iter::once("id".to_owned())
        .chain(parents)
        .chain(fields.take(5))
        .chain(["state".to_owned(), "version".to_owned()])
        .collect()
}

fn diff(vfs: &Vfs, prefix: &str) -> String {
    let parts: Vec<String> = vfs.diff(prefix).into_iter().map(|(_, body, _, _)| body).collect();
    parts.concat()
}

fn stat(vfs: &Vfs) -> String {
    let files = vfs.diff("");
    let mut out = String::new();
    for (path, _, added, removed) in &files {
        let bar = "+".repeat((*added).min(30)) + &"-".repeat((*removed).min(20));
        let _ = writeln!(out, " {path:<58} | {:>4} {bar}", added + removed);
    }
    out + &totals(&files)
}

fn totals(files: &[(String, String, usize, usize)]) -> String {
    let added: usize = files.iter().map(|file| file.2).sum();
    let removed: usize = files.iter().map(|file| file.3).sum();
    format!(" {} files changed, {added} insertions(+), {removed} deletions(-)", files.len())
}

fn commit(vfs: &mut Vfs, hash: &str, command: &str) -> String {
    let files = vfs.diff("");
    let subject = command.split('"').nth(1).unwrap_or("work");
    let branch = command.split_once("# ").map_or("fix/login-401", |(_, branch)| branch);
    let out = format!("[{branch} {hash}] {subject}\n{}", totals(&files));
    vfs.commit();
    out
}
