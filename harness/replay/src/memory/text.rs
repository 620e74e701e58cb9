//! Text output of `ctxbench memory`.

use std::fmt::Write;

use ctxbench_reports::printable;
use ctxbench_util::quantity::grouped as grouped_digits;

use super::{CountedFile, ProductMemory};

/// Formats one product: its files in order, imports below their importer, then notes.
pub fn product_text(c: &ProductMemory, counted_by: &str) -> String {
    if let Some(why) = c.reads_none {
        return format!("{} reads no memory files: {why}\n", c.product);
    }
    let mut out = format!(
        "{}: {} tokens at the start of a session ({counted_by})\n",
        c.product,
        thousands(c.tokens.start)
    );
    if c.files.is_empty() {
        out.push_str("  no memory files found\n");
    }
    let cells: Vec<[String; 3]> = c
        .files
        .iter()
        .map(|f| {
            [cell(f), f.level.into(), format!("{}{}", "  ".repeat(f.depth), printable(&f.path))]
        })
        .collect();
    let width = |i: usize| cells.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let (tokens, levels, paths) = (width(0), width(1), width(2));
    for (f, [n, level, path]) in c.files.iter().zip(&cells) {
        let row = format!("  {n:>tokens$}  {level:<levels$}  {path:<paths$}  {}", remark(f));
        out.push_str(row.trim_end());
        out.push('\n');
    }
    let sums = [
        ("with the files touched", c.tokens.touched, c.tokens.start + c.tokens.touched),
        ("pending", c.tokens.waits, c.tokens.waits),
        ("cut off", c.tokens.lost, c.tokens.lost),
    ];
    for (name, total, n) in sums {
        if total > 0 {
            let _ = writeln!(out, "  {name}: {} tokens", thousands(n));
        }
    }
    if c.tokens.touched > 0 {
        let _ = writeln!(
            out,
            "  after a compaction: {} tokens, until a matching file is touched again",
            thousands(c.tokens.start)
        );
    }
    for note in &c.notes {
        let _ = writeln!(out, "  note: {}", printable(note));
    }
    out
}

fn remark(f: &CountedFile) -> String {
    let paths = printable(&f.paths.join(", "));
    let mut out = match (f.when, f.depth) {
        ("waits", 0) => format!("waits for {paths}"),
        ("touched", 0) => format!("loaded for {paths}"),
        (_, 0) => String::new(),
        _ => "imported".to_string(),
    };
    if let Some(lost) = f.lost {
        if !out.is_empty() {
            out.push_str("; ");
        }
        let _ = write!(
            out,
            "truncated: {} tokens, {} bytes cut off",
            thousands(lost.tokens),
            thousands(lost.bytes as u64)
        );
    }
    out
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
    let mut rows = vec![row("tokens", &|c| c.product.clone())];
    for path in paths {
        rows.push(row(&printable(path), &|c| {
            c.files.iter().find(|f| f.path == path).map_or_else(|| "–".into(), cell)
        }));
    }
    rows.push(row("at the start", &|c| thousands(c.tokens.start)));
    rows.push(row("with the files touched", &|c| thousands(c.tokens.start + c.tokens.touched)));
    rows.push(row("pending", &|c| thousands(c.tokens.waits)));
    rows.push(row("cut off", &|c| thousands(c.tokens.lost)));
    let mut out = table(&rows);
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

/// Aligns the first column left and the others right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for r in rows {
        let cells = r.iter().zip(&widths).enumerate().map(|(i, (c, w))| match i {
            0 => format!("{c:<w$}"),
            _ => format!("{c:>w$}"),
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
