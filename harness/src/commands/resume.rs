//! `ctxbench resume`: what of a session that Codex has left on the disk comes back.

use std::path::PathBuf;

use anyhow::bail;
use ctxbench_core::counted::many;
use ctxbench_reports::printable;
use ctxbench_strategies::codex::reopened::{Reopened, Shown};

use super::store::words::short;

const EXAMPLES: &str = "\
Examples:
  ctxbench resume rollout.jsonl --items
";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A rollout of Codex (~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Every item that comes back, with its beginning
    #[arg(long)]
    items: bool,
    /// JSON instead of text, with every item whole
    #[arg(long)]
    json: bool,
}

pub(crate) fn resume(args: &Args) -> anyhow::Result<()> {
    let Some(file) = &args.file else {
        bail!("resume takes a rollout of Codex, such as: ctxbench resume rollout-….jsonl");
    };
    match std::fs::metadata(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => bail!(
            "{}: there is no such file; Codex keeps rollouts in ~/.codex/sessions/YYYY/MM/DD",
            file.display()
        ),
        Ok(m) if m.is_dir() => bail!(
            "{}: is a folder; name one rollout-….jsonl in it, or list what it holds with \
             ctxbench list sessions",
            file.display()
        ),
        _ => {}
    }
    super::input::must_be_file(file)?;
    let found = Reopened::read(file)?;
    if found.lines.is_empty() {
        bail!("{}: no line of a rollout in it; name a rollout-….jsonl of Codex", file.display());
    }
    super::print(&match args.json {
        true => serde_json::to_string_pretty(&found)?,
        false => text(&found, args.items),
    })
}

fn text(r: &Reopened, items: bool) -> String {
    let lines: Vec<String> = r.lines.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let mut out = vec![
        format!("session     {}, {}", r.session, version(r)),
        format!("lines       {}", lines.join(", ")),
    ];
    out.extend(r.unreadable.iter().map(|u| format!("            {u}")));
    out.push(format!("compacted   {}", compacted(r)));
    if r.taken_back > 0 {
        let gone = many(r.taken_back as usize, "line");
        out.push(format!("taken back  {gone} of turns that the user gave up"));
    }
    out.push(format!(
        "comes back  {}, {} tokens (o200k): {}",
        many(r.items.len(), "item"),
        r.tokens(),
        by_kind(&r.items)
    ));
    if r.ghosts > 0 {
        out.push(format!(
            "            {} of the working tree besides, which no model sees",
            many(r.ghosts as usize, "snapshot")
        ));
    }
    out.push(format!("first turn  {}", first_turn(r)));
    if items {
        out.push(String::new());
        let row = |(n, i): (usize, &Shown)| {
            format!("{:>4}  {:<10} {:>7}  {}", n + 1, i.kind, i.tokens, short(&i.text))
        };
        out.extend(r.items.iter().enumerate().map(row));
    }
    out.join("\n")
}

/// The version, and by whose rules one that was not observed is read.
fn version(r: &Reopened) -> String {
    let rules = r.rules;
    if r.version.is_empty() {
        return format!("Codex of an unknown version, opened by the rules of {rules}");
    }
    let known = r.version.strip_prefix(rules).is_some_and(|v| v.is_empty() || v.starts_with('.'));
    let told = format!("Codex {}", printable(&r.version));
    match known {
        true => told,
        false => format!("{told}, which was not observed: opened by the rules of {rules}"),
    }
}

fn compacted(r: &Reopened) -> String {
    let times = match r.compactions {
        0 => return "never".into(),
        1 => "once".to_string(),
        n => format!("{n} times"),
    };
    match &r.base {
        None => format!("{times}, in turns that the user gave up"),
        Some(b) if b.whole => {
            format!("{times}; it goes on from line {}, which holds the new history", b.line)
        }
        Some(b) => format!(
            "{times}; line {} holds a summary alone, so the compaction is carried out again",
            b.line
        ),
    }
}

/// Items by kind, in the order in which the kinds first stand.
fn by_kind(items: &[Shown]) -> String {
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for i in items {
        match kinds.iter_mut().find(|(kind, _)| *kind == i.kind) {
            Some((_, n)) => *n += 1,
            None => kinds.push((&i.kind, 1)),
        }
    }
    let told: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    if told.is_empty() { "nothing".into() } else { told.join(", ") }
}

fn first_turn(r: &Reopened) -> String {
    match (r.in_use, r.limit) {
        (None, _) => "no line counts the tokens in use, so nothing is compacted before it".into(),
        (Some(n), None) => format!("{n} tokens in use; no line tells a limit"),
        (Some(n), Some(limit)) => {
            let does = if n >= limit { "begins with a compaction" } else { "compacts nothing" };
            format!("{does}: {n} tokens in use, and the limit is {limit}, 90 % of the window")
        }
    }
}
