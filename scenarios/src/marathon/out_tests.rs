//! Outputs of the test runner, the type checker and the linter, from the real files.

use super::rng::Rng;
use super::vfs::Vfs;
use std::fmt::Write;

struct Failure<'a> {
    path: &'a str,
    name: &'a str,
    message: &'a str,
    frames: Vec<(&'a str, &'a str, &'a str)>,
}

/// `FAIL path :: test :: message :: function path|needle ; ...`; other lines are shown as they are.
fn failure(line: &str) -> Option<Failure<'_>> {
    let mut parts = line.strip_prefix("FAIL ")?.split(" :: ");
    let mut next = || parts.next().expect("a failure has four parts");
    let (path, name, message, frames) = (next(), next(), next(), next());
    let frames = frames
        .split(" ; ")
        .map(|frame| {
            let (place, needle) = frame.split_once('|').expect("a frame names a line");
            let (function, path) = place.split_once(' ').expect("a frame names a function");
            (function, path, needle)
        })
        .collect();
    Some(Failure { path, name, message, frames })
}

/// Names of the tests in a file, with the describe blocks around them.
fn tests_in(text: &str) -> Vec<String> {
    let mut stack: Vec<(usize, &str)> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let name = trimmed.split('\'').nth(1).unwrap_or("");
        if trimmed.starts_with("describe(") {
            stack.retain(|(at, _)| *at < indent);
            stack.push((indent, name));
        } else if trimmed.starts_with("it(") || trimmed.starts_with("])(") {
            let parents: Vec<&str> =
                stack.iter().filter(|(at, _)| *at < indent).map(|(_, name)| *name).collect();
            found.push(format!("{} > {name}", parents.join(" > ")));
        }
    }
    found
}

/// Path filters of the tool, or of a test command in a shell line.
fn filters(args: &str) -> Vec<&str> {
    let tail = args.rsplit_once("vitest run ").or_else(|| args.rsplit_once(" -- "));
    tail.map_or(args, |(_, rest)| rest)
        .split_whitespace()
        .take_while(|word| !matches!(*word, "|" | "&&" | ";"))
        .filter(|word| !word.starts_with('-'))
        .collect()
}

pub fn run(vfs: &Vfs, rng: &mut Rng, args: &str, extra: &[&str]) -> String {
    let verbose = args.ends_with("-v");
    let filters = filters(args);
    let failures: Vec<Failure<'_>> = extra.iter().filter_map(|line| failure(line)).collect();
    let mut out = String::from("\n RUN  v1.6.0 /srv/harbor-shop\n\n");
    let (mut files, mut tests, mut failed_files, mut total_ms) = (0, 0, 0, 0);
    for (path, text) in vfs.files.iter().filter(|(path, _)| path.starts_with("tests/")) {
        let names = tests_in(text);
        if !(filters.is_empty() || filters.iter().any(|filter| path.contains(filter)))
            || names.is_empty()
        {
            continue;
        }
        files += 1;
        tests += names.len();
        let failed = failures.iter().filter(|failure| failure.path == path).count();
        failed_files += usize::from(failed > 0);
        let ms = rng.range(9, 900);
        total_ms += ms;
        let mark = if failed > 0 { '❯' } else { '✓' };
        let note = if failed > 0 { format!(" | {failed} failed") } else { String::new() };
        let _ = writeln!(out, " {mark} {path} ({} tests{note}) {ms}ms", names.len());
        for name in names {
            let bad =
                failures.iter().any(|failure| failure.path == path && name.ends_with(failure.name));
            if verbose || bad {
                let _ = writeln!(
                    out,
                    "   {} {name} {}ms",
                    if bad { '×' } else { '✓' },
                    rng.range(1, 60)
                );
            }
        }
    }
    for failure in &failures {
        out += &failure_report(vfs, failure);
    }
    for line in extra.iter().filter(|line| !line.starts_with("FAIL ")) {
        let _ = writeln!(out, "{line}");
    }
    let part = |failed: usize, all: usize| match failed {
        0 => format!("{all} passed ({all})"),
        _ => format!("{failed} failed | {} passed ({all})", all.saturating_sub(failed)),
    };
    let _ = write!(
        out,
        "\n Test Files  {}\n      Tests  {}\n   Duration  {}.{:02}s (transform {}ms, setup {}ms, \
         collect {}ms)",
        part(failed_files, files),
        part(failures.len(), tests),
        total_ms / 1000 + 1,
        rng.range(0, 99),
        rng.range(80, 900),
        rng.range(5, 90),
        rng.range(200, 3000),
    );
    out
}

fn failure_report(vfs: &Vfs, failure: &Failure<'_>) -> String {
    let mut out = format!(
        "\n⎯⎯⎯⎯⎯⎯⎯ Failed Tests ⎯⎯⎯⎯⎯⎯⎯\n\n FAIL  {} > {}\n{}\n",
        failure.path, failure.name, failure.message
    );
    for (function, path, needle) in &failure.frames {
        let line = vfs.line_of(path, needle);
        let text = vfs.text(path).lines().nth(line - 1).unwrap_or("");
        let column = text.len() - text.trim_start().len() + 1;
        let _ = writeln!(out, " ❯ {function} {path}:{line}:{column}");
    }
    if let Some((_, path, needle)) = failure.frames.first() {
        let line = vfs.line_of(path, needle);
        for (index, text) in vfs.text(path).lines().enumerate() {
            let number = index + 1;
            if number + 4 > line && number < line + 4 {
                let mark = if number == line { '>' } else { ' ' };
                let _ = writeln!(out, "{mark} {number:>4}|   {text}");
            }
        }
    }
    out
}

/// Body lines `path|needle|TS2345|message`.
pub fn type_check(vfs: &Vfs, extra: &[&str]) -> String {
    let mut out = String::new();
    for line in extra {
        let parts: Vec<&str> = line.splitn(4, '|').collect();
        let number = vfs.line_of(parts[0], parts[1]);
        let _ = writeln!(out, "{}({number},5): error {}: {}", parts[0], parts[2], parts[3]);
    }
    let _ = write!(out, "Found {} errors.", extra.len());
    out
}

pub fn lint(vfs: &Vfs, rng: &mut Rng, count: usize, extra: &[&str]) -> String {
    const RULES: [&str; 6] = [
        "Unexpected console statement  no-console",
        "'error' is defined but never used  @typescript-eslint/no-unused-vars",
        "Unsafe assignment of an `any` value  @typescript-eslint/no-unsafe-assignment",
        "Promise returned in function argument where a void return was expected  \
         @typescript-eslint/no-misused-promises",
        "Missing return type on function  @typescript-eslint/explicit-function-return-type",
        "Prefer nullish coalescing over a logical or  @typescript-eslint/prefer-nullish-coalescing",
    ];
    let files: Vec<&String> = vfs.files.keys().filter(|path| path.ends_with(".ts")).collect();
    let step = (files.len() / count.max(1)).max(1);
    let mut out = String::new();
    for path in files.iter().step_by(step).take(count) {
        let _ = writeln!(out, "\n{path}");
        for _ in 0..rng.range(1, 5) {
            let rule = rng.pick(&RULES);
            let _ = writeln!(out, "  {}:{}  warning  {rule}", rng.range(10, 200), rng.range(3, 60));
        }
    }
    for line in extra {
        let _ = writeln!(out, "{line}");
    }
    out
}

pub fn coverage(vfs: &Vfs, rng: &mut Rng, prefix: &str, extra: &[&str]) -> String {
    let mut out = String::from(
        "File                                       | % Stmts | % Branch | % Funcs | Uncovered \
         lines\n",
    );
    for path in vfs.files.keys().filter(|path| path.starts_with("src/") && path.contains(prefix)) {
        let statements = rng.range(52, 100);
        let _ = writeln!(
            out,
            "{path:<42} | {statements:>4}.{:02} | {:>5}.{:02} | {:>4}.{:02} | {}-{},{}",
            rng.range(0, 99),
            rng.range(40, 100),
            rng.range(0, 99),
            rng.range(50, 100),
            rng.range(0, 99),
            rng.range(20, 60),
            rng.range(60, 90),
            rng.range(91, 190),
        );
    }
    for line in extra {
        let _ = writeln!(out, "{line}");
    }
    out
}
