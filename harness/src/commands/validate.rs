//! `ctxbench validate`: compares predicted tokens and cache reads with a recording's counters.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use ctxbench_core::usage::Ttl;
use ctxbench_replay::validate::{PredictOptions, Validated, read, validate as compare};
use ctxbench_scenarios::InputError;
use ctxbench_scenarios::formats::{self, Head, Source};
use ctxbench_util::files;
use ctxbench_util::plural::pluralize;

use super::{CheckFailed, input};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ctxbench validate r.jsonl
")]
pub(crate) struct ValidateArgs {
    #[arg(required = true, value_name = "FILE")]
    #[arg(help = format!("Recordings of {}, or folders or archives of them", formats::titles()))]
    files: Vec<PathBuf>,
    /// Fail if fewer per cent of the compared calls match exactly; gateways do not count
    #[arg(long, value_name = "SHARE", value_parser = per_cent)]
    min: Option<f64>,
    /// Let cache entries live forever
    #[arg(long)]
    no_lifetimes: bool,
    /// Lifetime of cache entries where the recording has none: 5m or 1h
    #[arg(long, default_value = "5m", value_parser = ttl)]
    ttl: Ttl,
    /// Print JSON with every call
    #[arg(long)]
    json: bool,
}

fn ttl(text: &str) -> Result<Ttl, String> {
    serde_json::from_value(text.into()).map_err(|_| "expected 5m or 1h".into())
}

fn per_cent(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|s| (0.0..=100.0).contains(s));
    share.ok_or_else(|| "a share in per cent, 0 to 100".into())
}

pub(crate) fn validate(args: &ValidateArgs) -> anyhow::Result<()> {
    let options = PredictOptions { lifetimes: !args.no_lifetimes, ttl: args.ttl };
    let (mut all, mut bad) = (Vec::new(), Vec::new());
    for path in &args.files {
        bad.extend(of_path(path, options, &mut all).unwrap_or_else(|e| vec![e]));
    }
    if !all.is_empty() {
        match args.json {
            true => super::print_json(&json(&all))?,
            false => super::print(&table(&all, args))?,
        }
    }
    // All results were printed before the first error.
    super::first_error(bad)?;
    let (_, exact, compared) = counted(&all, Validated::counts);
    match args.min {
        Some(min) if compared == 0 => {
            Err(CheckFailed(format!("--min {min}: no calls to compare outside gateways")).into())
        }
        Some(min) if 100.0 * (exact as f64) < min * compared as f64 => Err(CheckFailed(format!(
            "{exact} of {compared} compared calls are exactly right ({}); --min asks for {min} %",
            share(exact, compared)
        ))
        .into()),
        _ => Ok(()),
    }
}

/// Adds the validated sessions of a path. Returns the errors of a named file, which must be a
/// recording. A folder may contain other files.
fn of_path(
    path: &Path,
    options: PredictOptions,
    all: &mut Vec<Validated>,
) -> anyhow::Result<Vec<anyhow::Error>> {
    let shown = path.display().to_string();
    let through = input::is_pipe(path).then(|| input::piped(path)).transpose()?;
    let source = match &through {
        Some(bytes) => Source::of_bytes(bytes, &shown),
        None => on_disk(path, &shown),
    };
    let before = all.len();
    let mut add = |source: &Source<'_>, failed: &mut dyn FnMut(anyhow::Error)| {
        read(source, |one| match one {
            Ok(one) => {
                let v = compare(&one, options);
                v.warnings.iter().for_each(|w| report!("note: {w}"));
                all.push(v);
            }
            Err(e) => failed(e.into()),
        });
    };
    let mut skip = |e: anyhow::Error| report!("skipped: {e:#}");
    let inside = inside(path, &source, &mut |source| match source {
        Ok(source) => add(source, &mut skip),
        Err(e) => skip(e.into()),
    })?;
    let mut bad = Vec::new();
    match inside {
        None => add(&source, &mut |e| bad.push(e)),
        Some(files) if all.len() == before => {
            let files = pluralize(files, "file");
            bail!("{shown}: no recording with counters among {files} in it");
        }
        Some(_) => {}
    }
    Ok(bad)
}

/// Returns the source of a file. The files of its subagents are separate recordings.
fn on_disk<'a>(path: &'a Path, shown: &str) -> Source<'a> {
    Source::at(path).called(shown).alone()
}

type TakeSource<'a> = dyn FnMut(Result<&Source<'_>, InputError>) + 'a;

/// Passes the possible recordings in a folder or an archive to `take`, and returns their number.
/// `None` if the source is a single recording.
fn inside(
    path: &Path,
    source: &Source<'_>,
    take: &mut TakeSource<'_>,
) -> anyhow::Result<Option<usize>> {
    if !path.is_dir() || formats::detect(&Source::at(path)).is_some() {
        return Ok(members(source, take)?);
    }
    let (mut whole, mut unread) = (Vec::new(), Ok(()));
    let is_other = |below: &Path| {
        let is_recording = formats::detect(&Source::at(below)).is_some();
        whole.extend(is_recording.then(|| below.to_path_buf()));
        !is_recording
    };
    let files = files::walk_into(path, is_other, |e| unread = Err(e));
    unread?;
    let mut met = 0;
    for file in whole.iter().chain(files.iter().filter(|file| file.is_file())) {
        let shown = file.display().to_string();
        let source = on_disk(file, &shown);
        met += match members(&source, take) {
            Ok(Some(members)) => members,
            Ok(None) if !may_be_recording(file, &source) => 0,
            Ok(None) => {
                take(Ok(&source));
                1
            }
            Err(e) => {
                take(Err(e));
                1
            }
        };
    }
    Ok(Some(met))
}

/// Passes the possible recordings in an archive to `take`, and returns their number. `None` if the
/// source is not an archive, or is an archive that is a single recording.
fn members(source: &Source<'_>, take: &mut TakeSource<'_>) -> Result<Option<usize>, InputError> {
    // The reader reports unreadable files.
    let is_archive = |head: Head| head.members.is_some() && formats::detect_head(&head).is_none();
    if !source.head().is_ok_and(is_archive) {
        return Ok(None);
    }
    let Some(archive) = source.archive()? else { return Ok(None) };
    let mut met = 0;
    for name in archive.names() {
        match archive.member(name) {
            Ok(member) if !may_be_recording(Path::new(name), &member) => continue,
            Ok(member) => take(Ok(&member.alone())),
            Err(e) => take(Err(e)),
        }
        met += 1;
    }
    Ok(Some(met))
}

fn may_be_recording(name: &Path, source: &Source<'_>) -> bool {
    let named = |ending: &str| name.extension().is_some_and(|e| e.eq_ignore_ascii_case(ending));
    let known = |head: Head| formats::detect_head(&head).is_some();
    named("jsonl") || named("zip") || source.head().is_ok_and(known)
}

/// Returns the number of recordings, of calls that match exactly, and of compared calls.
fn counted(all: &[Validated], of: impl Fn(&Validated) -> bool) -> (usize, usize, usize) {
    let add = |(n, e, c), v: &Validated| (n + 1, e + v.exact, c + v.compared);
    all.iter().filter(|v| of(v)).fold((0, 0, 0), add)
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 { "n/a".into() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

fn json(all: &[Validated]) -> serde_json::Value {
    let sum = |(_, exact, compared): (usize, usize, usize)| {
        let pct = (compared > 0).then(|| 100.0 * exact as f64 / compared as f64);
        serde_json::json!({"exact": exact, "compared": compared, "exact_pct": pct})
    };
    serde_json::json!({
        "counted": sum(counted(all, Validated::counts)),
        "gateways": sum(counted(all, |v| !v.counts())),
        "files": all,
    })
}

fn table(all: &[Validated], args: &ValidateArgs) -> String {
    let mut out = String::new();
    for v in all {
        file(&mut out, v);
    }
    let group = |name: &str, yes: fn(&Validated) -> bool| {
        let (n, e, c) = counted(all, yes);
        format!(
            "{name:<22} {:>14}   {e:>5} of {:>11} exactly right   {}\n",
            pluralize(n, "recording"),
            pluralize(c, "call"),
            share(e, c)
        )
    };
    out += &group("direct API", |v| v.route == "direct");
    out += &group("route not recorded", |v| v.route == "unknown");
    out += &group("through a gateway", |v| v.route == "gateway");
    if args.no_lifetimes {
        out += "Cache entries lived for ever (--no-lifetimes).\n";
    }
    out += "Predicted: how each prompt divides into read and written. Taken from the counters: the \
        sizes of prompts, and the lifetime asked for.\n";
    out
}

fn file(out: &mut String, v: &Validated) {
    let _ = writeln!(out, "{} ({})", v.file, v.format);
    let _ = writeln!(out, "  route         {}: {}", v.route, v.route_evidence);
    let _ = writeln!(
        out,
        "  calls         {}, compared {}, exactly right {} = {} (the bare law read = read + write \
         before: {})",
        v.calls,
        v.compared,
        v.exact,
        share(v.exact, v.compared),
        share(v.law, v.compared)
    );
    if v.near > v.exact {
        let _ = writeln!(
            out,
            "                {} hit within four steps of the prediction = {}",
            v.near,
            share(v.near, v.compared)
        );
    }
    if v.size_unknown > 0 {
        let _ = writeln!(
            out,
            "                {} more right but for the size of the system part, which shows there \
             for the first time",
            v.size_unknown
        );
    }
    let _ = writeln!(
        out,
        "  read          predicted {:>12}   counters {:>12}   {}",
        v.read_predicted,
        v.read_actual,
        ratio(v.read_predicted, v.read_actual)
    );
    if let (Some(p), Some(a)) = (v.write_predicted, v.write_actual) {
        let _ =
            writeln!(out, "  written       predicted {p:>12}   counters {a:>12}   {}", ratio(p, a));
    }
    let c = &v.cost;
    if v.compared > c.unpriced_calls {
        let unpriced = if c.unpriced_calls > 0 {
            format!("; {} without a price list left out", pluralize(c.unpriced_calls, "call"))
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "  input cost    predicted {:.4} USD   counters {:.4} USD   {:+.2} %{unpriced}",
            c.predicted_usd,
            c.counters_usd,
            100.0 * (c.predicted_usd / c.counters_usd.max(f64::MIN_POSITIVE) - 1.0)
        );
    }
    misses(out, v);
    counts(out, v);
    out.push('\n');
}

fn ratio(predicted: u64, actual: u64) -> String {
    if actual == 0 { "n/a".into() } else { format!("{:.4}", predicted as f64 / actual as f64) }
}

fn misses(out: &mut String, v: &Validated) {
    if v.misses.is_empty() {
        let _ = writeln!(out, "  misses        none");
        return;
    }
    let usd: f64 = v.causes.values().map(|c| c.usd).sum();
    let _ = writeln!(
        out,
        "  misses        {}, {usd:.4} USD more than reads from the cache",
        v.misses.len()
    );
    let mut causes: Vec<_> = v.causes.iter().collect();
    causes.sort_by(|a, b| b.1.usd.total_cmp(&a.1.usd).then(a.0.cmp(b.0)));
    for (cause, total) in causes {
        let _ = writeln!(
            out,
            "    {:<20} {:>5} × {:>10} tokens not read {:>10.4} USD",
            cause.name(),
            total.misses,
            total.tokens,
            total.usd
        );
    }
    for m in &v.misses {
        let gap = m.gap_s.map_or("n/a".into(), |s| format!("{s:.0} s"));
        let right = if m.predicted { "predicted" } else { "NOT predicted" };
        let usd = m.usd.map_or("n/a".into(), |usd| format!("{usd:.4} USD"));
        let _ = writeln!(
            out,
            "    line {:<6} after {gap:<8} left {:>8} read {:>8} predicted {:>8}   {usd:>10}   \
             {right}   {}: {}",
            m.line,
            m.left,
            m.read,
            m.predicted_read,
            m.cause.name(),
            m.evidence
        );
    }
}

fn counts(out: &mut String, v: &Validated) {
    let b = &v.bias;
    if b.calls == 0 {
        return;
    }
    let f = |x: Option<f64>| x.map_or("n/a".to_string(), |x| format!("{x:.3}"));
    let _ = writeln!(
        out,
        "  token counts  provider ÷ ours (o200k) over what {} added: {} ({} ÷ {} tokens)",
        pluralize(b.calls, "call"),
        f(b.ratio),
        b.provider,
        b.ours
    );
}
