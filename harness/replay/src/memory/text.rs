//! Text output of `ctxbench memory`.

use std::fmt::Write;

use ctxbench_reports::{printable, text_table};
use ctxbench_util::quantity::grouped as grouped_digits;

use super::{CountedFile, ProductMemory, TokenTotals};

/// Formats one product: a row per file, imports below their importer, then totals and notes.
pub fn product_text(c: &ProductMemory, counted_by: &str) -> String {
    if let Some(why) = c.reads_none {
        return format!("{} reads no memory files: {why}\n", c.product);
    }
    let file = |f: &CountedFile| {
        let path = format!("{}{}", "  ".repeat(f.depth), printable(&f.path));
        vec![cell(f), f.level.into(), path, remark(f)]
    };
    let total = |(name, n): (&str, u64)| vec![thousands(n), String::new(), name.into()];
    let rows = c.files.iter().map(file).chain(totals(&c.tokens).map(total));
    let head = ["tokens", "level", &c.product, ""].map(String::from);
    let mut out = table(head.into(), rows, |i| i == 0);
    let _ = writeln!(out, "\n{counted_by}");
    for note in &c.notes {
        let _ = writeln!(out, "note: {}", printable(note));
    }
    out
}

fn totals(tokens: &TokenTotals) -> [(&'static str, u64); 4] {
    [
        ("at the start", tokens.start),
        ("with the files touched", tokens.start + tokens.touched),
        ("pending", tokens.waits),
        ("cut off", tokens.lost),
    ]
}

fn remark(f: &CountedFile) -> String {
    let paths = printable(&f.paths.join(", "));
    let loaded = match (f.when, f.depth) {
        ("waits", 0) => format!("waits for {paths}"),
        ("touched", 0) => format!("loaded for {paths}"),
        (_, 0) => String::new(),
        _ => "imported".to_string(),
    };
    let lost = f.lost.map(|lost| {
        let (tokens, bytes) = (thousands(lost.tokens), thousands(lost.bytes as u64));
        format!("truncated: {tokens} tokens, {bytes} bytes cut off")
    });
    let remarks = [Some(loaded).filter(|l| !l.is_empty()), lost];
    remarks.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Formats all products: a row per file, a column per product, then notes.
pub fn side_by_side(all: &[ProductMemory], counted_by: &str) -> String {
    let readers: Vec<&ProductMemory> = all.iter().filter(|c| c.reads_none.is_none()).collect();
    let mut paths: Vec<&str> = Vec::new();
    for f in readers.iter().flat_map(|c| &c.files) {
        if !paths.contains(&f.path.as_str()) {
            paths.push(&f.path);
        }
    }
    let row = |name: &str, value: &dyn Fn(&ProductMemory) -> String| -> Vec<String> {
        std::iter::once(name.to_string()).chain(readers.iter().map(|c| value(c))).collect()
    };
    let file = |path: &str| {
        row(&printable(path), &|c| {
            c.files.iter().find(|f| f.path == path).map_or_else(|| "–".into(), cell)
        })
    };
    let total = |i: usize| {
        row(totals(&TokenTotals::default())[i].0, &|c| thousands(totals(&c.tokens)[i].1))
    };
    let rows = paths.into_iter().map(file).chain((0..4).map(total));
    let mut out = table(row("tokens", &|c| c.product.clone()), rows, |i| i > 0);
    let _ = writeln!(
        out,
        "\n{counted_by}; +N: loaded for a touched file, (N): pending until one is touched, N*: truncated, \
         –: not read"
    );
    let none = all.iter().filter_map(|c| Some((c.reads_none?, c.product.as_str())));
    for (why, by) in grouped(none) {
        let _ = writeln!(out, "no memory files: {}: {why}", by.join(", "));
    }
    let notes =
        readers.iter().flat_map(|c| c.notes.iter().map(|n| (n.as_str(), c.product.as_str())));
    for (note, by) in grouped(notes) {
        let _ = writeln!(out, "note: {}: {}", by.join(", "), printable(note));
    }
    out
}

fn table(
    head: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
    is_figure: impl Fn(usize) -> bool,
) -> String {
    text_table(head, rows, is_figure, |i| (if i > 0 { 2 } else { 0 }, 0)).join("\n") + "\n"
}

/// Groups equal sentences, with the products of each.
fn grouped<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut out: Vec<(&str, Vec<&str>)> = Vec::new();
    for (sentence, by) in pairs {
        match out.iter_mut().find(|(s, _)| *s == sentence) {
            Some((_, all)) if all.contains(&by) => {}
            Some((_, all)) => all.push(by),
            None => out.push((sentence, vec![by])),
        }
    }
    out
}

fn cell(f: &CountedFile) -> String {
    let n = thousands(f.tokens);
    let n = match f.when {
        "waits" => format!("({n})"),
        "touched" => format!("+{n}"),
        _ => n,
    };
    if f.lost.is_some() { format!("{n}*") } else { n }
}

fn thousands(n: u64) -> String {
    grouped_digits(n, ',')
}
