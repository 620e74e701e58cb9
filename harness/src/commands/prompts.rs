//! `ctxbench prompts`: the file in which Codex keeps what people typed, over all sessions.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use ctxbench_core::counted::many;
use ctxbench_kit::rollout::{HistoryFile, LogId, TypedPrompt, soft_cap, trimmed};
use ctxbench_reports::printable;
use serde_json::json;

use super::store::words::{short, time};

const EXAMPLES: &str = "\
Examples:
  ctxbench prompts history.jsonl --at 1
";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The history of prompts (~/.codex/history.jsonl)
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Limit of the file in bytes, such as 65536 or 64k, history.max_bytes in Codex's settings
    /// (default: none)
    #[arg(long, value_name = "N", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Appends a prompt under the file's lock, and trims the file where it is past its limit
    #[arg(long, value_name = "TEXT", requires = "session", value_parser = given)]
    add: Option<String>,
    /// Session in which the prompt was typed
    #[arg(long, value_name = "ID", value_parser = given)]
    session: Option<String>,
    /// The prompt at this place, from 0
    #[arg(long, value_name = "N", conflicts_with = "add")]
    at: Option<usize>,
    /// The place was taken in the file of this id; in another file it means nothing
    #[arg(long, value_name = "ID", requires = "at")]
    log: Option<u64>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A number of bytes: 65536, 65_536 or 64k.
fn bytes(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (digits, factor) =
        plain.strip_suffix(['k', 'K']).map_or((plain.as_str(), 1), |d| (d, 1_000));
    let found = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
    found.ok_or_else(|| "a number of bytes, such as 64000 or 64k".into())
}

/// Something that is not blank.
fn given(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("it is empty, and Codex writes no such line".into()),
        false => Ok(text.into()),
    }
}

pub(crate) fn prompts(args: &Args) -> anyhow::Result<()> {
    let Some(path) = &args.file else {
        bail!(
            "prompts takes a history of prompts, such as: ctxbench prompts ~/.codex/history.jsonl"
        );
    };
    super::input::must_be_file(path)?;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
    let pause = |ms| std::thread::sleep(Duration::from_millis(ms));
    let history = HistoryFile::new(path, args.max_bytes, Box::new(clock), pause);
    let there = history.read()?;
    if let Some(text) = there.as_deref().filter(|t| !t.trim().is_empty())
        && text.lines().all(|l| serde_json::from_str::<TypedPrompt>(l).is_err())
    {
        bail!(
            "{}: none of its {} is a prompt, and nothing was changed; name a history.jsonl of Codex",
            path.display(),
            many(text.lines().count(), "line")
        );
    }
    if let (Some(text), Some(session)) = (&args.add, &args.session) {
        return add(args, &history, session, text);
    }
    let missing = || format!("{}: there is no such file", path.display());
    let text = there.with_context(missing)?;
    let log = history.metadata()?.with_context(missing)?.log;
    match args.at {
        Some(at) => look_up(args, &history, args.log.map_or(log, LogId), at),
        None => overview(args, &text, log),
    }
}

fn overview(args: &Args, text: &str, log: LogId) -> anyhow::Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    let read = |l: &&str| serde_json::from_str::<TypedPrompt>(l).ok();
    let prompts: Vec<Option<TypedPrompt>> = lines.iter().map(read).collect();
    let unreadable = prompts.iter().filter(|p| p.is_none()).count();
    let limit = args.max_bytes.map(|max| {
        let session = prompts.iter().rev().flatten().next().map_or("", |p| &p.session_id);
        let next = with_next(text, session);
        let goes = next.lines().count() - trimmed(&next, max).lines().count();
        (max, soft_cap(max), goes)
    });
    if args.json {
        let limit = limit.map(
            |(max, soft, goes)| json!({ "max_bytes": max, "soft_cap_bytes": soft, "over": goes }),
        );
        return super::print(&serde_json::to_string_pretty(&json!({
            "log": log.0, "bytes": text.len(), "entries": lines.len(),
            "unreadable": unreadable, "limit": limit, "prompts": prompts,
        }))?);
    }
    let mut out = vec![format!(
        "{}, {} bytes, file {}{}",
        many(lines.len() - unreadable, "prompt"),
        text.len(),
        log.0,
        match unreadable {
            0 => String::new(),
            n => format!(", {} unreadable", many(n, "line")),
        }
    )];
    if let Some((max, soft, goes)) = limit {
        out.push(match goes {
            0 => format!("up to {max} bytes nothing goes; beyond, the file keeps {soft}, 80 %"),
            n => format!(
                "the next prompt takes the file past {max} bytes: at least the {} {}, down to \
                 {soft} bytes, 80 %, or the newest line alone",
                if n == 1 { "oldest".into() } else { format!("{n} oldest") },
                if n == 1 { "goes" } else { "go" }
            ),
        });
    }
    for (n, p) in prompts.iter().enumerate() {
        out.push(match p {
            Some(p) => row(n, p),
            None => format!("{n:>4}  cannot be read"),
        });
    }
    super::print(&out.join("\n"))
}

/// The history with one more prompt, of one letter, in the session that was last typed in: what that
/// takes away, every other prompt does, too.
fn with_next(text: &str, session: &str) -> String {
    let next = TypedPrompt { session_id: session.into(), ts: NEXT_S, text: "x".into() };
    let line = serde_json::to_string(&next).expect("texts and a number always serialise");
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}{line}\n")
}

/// A time with as many digits as those of this century, s since 1970.
const NEXT_S: u64 = 1_800_000_000;

fn row(n: usize, p: &TypedPrompt) -> String {
    let at = time(i64::try_from(p.ts.saturating_mul(1_000)).unwrap_or(i64::MAX));
    let session: String = printable(&p.session_id).chars().take(8).collect();
    format!("{n:>4}  {at}  {session:<8}  {}", short(&p.text))
}

fn look_up(args: &Args, history: &HistoryFile, log: LogId, at: usize) -> anyhow::Result<()> {
    let found = history.lookup(log, at)?;
    if args.json {
        return super::print(&serde_json::to_string_pretty(&found)?);
    }
    match found {
        // A terminal must not be steered by what was typed.
        Some(p) => super::print(&p.text.lines().map(printable).collect::<Vec<_>>().join("\n")),
        None => bail!(
            "nothing at place {at} of file {}: another file stands there now, it has fewer lines, \
             or the line cannot be read",
            log.0
        ),
    }
}

fn add(args: &Args, history: &HistoryFile, session: &str, text: &str) -> anyhow::Result<()> {
    let lines = |text: Option<String>| text.map_or(0, |t| t.lines().count());
    let before = lines(history.read()?);
    history.append(session, text)?;
    let after = history.read()?.unwrap_or_default();
    let entries = after.lines().count();
    let gone = (before + 1).saturating_sub(entries);
    if args.json {
        return super::print(&serde_json::to_string_pretty(&json!({
            "entries": entries, "bytes": after.len(), "trimmed": gone,
        }))?);
    }
    let trim = match gone {
        0 => "nothing had to go".into(),
        n => format!("the {} went", if n == 1 { "oldest".into() } else { format!("{n} oldest") }),
    };
    let of = many(entries, "prompt");
    super::print(&format!("{of}, {} bytes now; {trim}", after.len()))
}
