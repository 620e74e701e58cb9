//! `ctxbench validate`: compares predicted tokens and cache reads with a recording's counters.

use std::path::{Path, PathBuf};

use anyhow::bail;
use ctxbench_core::usage::Ttl;
use ctxbench_replay::validate::{CauseTotal, PredictOptions, Validated, read, validate as compare};
use ctxbench_scenarios::InputError;
use ctxbench_scenarios::formats::{self, Head, Source};
use ctxbench_util::files;
use ctxbench_util::plural::pluralize;

use super::{CheckFailed, input};

#[derive(clap::Args)]
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
        super::print_either(args.json, &json(&all), || table(&all, args))?;
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
/// recording. A folder or an archive may contain other files.
fn of_path(
    path: &Path,
    options: PredictOptions,
    all: &mut Vec<Validated>,
) -> anyhow::Result<Vec<anyhow::Error>> {
    let shown = path.display().to_string();
    let through = input::is_pipe(path).then(|| input::piped(path)).transpose()?;
    // The files of its subagents are separate recordings.
    let source = match &through {
        Some(bytes) => Source::of_bytes(bytes, &shown),
        None => Source::at(path).called(&shown).alone(),
    };
    let (before, mut met, mut bad) = (all.len(), 0, Vec::new());
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
    let mut inside = |source: Result<&Source<'_>, InputError>| {
        met += 1;
        let mut skip = |e: anyhow::Error| report!("skipped: {e:#}");
        match source {
            Ok(source) => add(source, &mut skip),
            Err(e) => skip(e.into()),
        }
    };
    if path.is_dir() && formats::detect(&Source::at(path)).is_none() {
        let (mut whole, mut unread, mut out) = (Vec::new(), Ok(()), Vec::new());
        let root = path.canonicalize()?;
        let is_other = |below: &Path| {
            if let Some(e) = files::link_out(&root, below) {
                out.push(e.to_string());
                return false;
            }
            let is_recording = formats::detect(&Source::at(below)).is_some();
            whole.extend(is_recording.then(|| below.to_path_buf()));
            !is_recording
        };
        let files = files::walk_into(path, is_other, |e| unread = Err(e));
        unread?;
        out.iter().for_each(|e| report!("skipped: {e}"));
        for file in whole.iter().chain(files.iter().filter(|file| file.is_file())) {
            let shown = file.display().to_string();
            let source = Source::at(file).called(&shown).alone();
            match members(&source, &mut inside) {
                Ok(false) if may_be_recording(file, &source) => inside(Ok(&source)),
                Ok(_) => {}
                Err(e) => inside(Err(e)),
            }
        }
    } else if !members(&source, &mut inside)? {
        add(&source, &mut |e| bad.push(e));
        return Ok(bad);
    }
    if all.len() == before {
        bail!("{shown}: no recording with counters among {} in it", pluralize(met, "file"));
    }
    Ok(bad)
}

/// Passes the possible recordings in an archive to `take`. Returns `false` if the source is not an
/// archive, or is an archive that is a single recording.
fn members(
    source: &Source<'_>,
    take: &mut dyn FnMut(Result<&Source<'_>, InputError>),
) -> Result<bool, InputError> {
    // The reader reports unreadable files.
    let is_archive = |head: Head| head.members.is_some() && formats::detect_head(&head).is_none();
    if !source.head().is_ok_and(is_archive) {
        return Ok(false);
    }
    let Some(archive) = source.archive()? else { return Ok(false) };
    for name in archive.names() {
        match archive.member(name) {
            Ok(member) if !may_be_recording(Path::new(name), &member) => {}
            Ok(member) => take(Ok(&member.alone())),
            Err(e) => take(Err(e)),
        }
    }
    Ok(true)
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
    *out += &format!("{} ({})\n", v.file, v.format);
    let mut row = |name: &str, text: String| *out += &format!("  {name:<14}{text}\n");
    row("route", format!("{}: {}", v.route, v.route_evidence));
    let (exact, law) = (share(v.exact, v.compared), share(v.law, v.compared));
    let right = format!("compared {}, exactly right {} = {exact}", v.compared, v.exact);
    let bare = format!("(the bare law read = read + write before: {law})");
    row("calls", format!("{}, {right} {bare}", v.calls));
    if v.near > v.exact {
        let near = share(v.near, v.compared);
        row("", format!("{} hit within four steps of the prediction = {near}", v.near));
    }
    if v.size_unknown > 0 {
        let but =
            "more right but for the size of the system part, which shows there for the first time";
        row("", format!("{} {but}", v.size_unknown));
    }
    let both = |predicted: u64, actual: u64| {
        let ratio = predicted as f64 / actual as f64;
        let ratio = if actual == 0 { "n/a".into() } else { format!("{ratio:.4}") };
        format!("predicted {predicted:>12}   counters {actual:>12}   {ratio}")
    };
    row("read", both(v.read_predicted, v.read_actual));
    if let (Some(predicted), Some(actual)) = (v.write_predicted, v.write_actual) {
        row("written", both(predicted, actual));
    }
    let c = &v.cost;
    if v.compared > c.unpriced_calls {
        let left_out = pluralize(c.unpriced_calls, "call");
        let unpriced = match c.unpriced_calls {
            0 => String::new(),
            _ => format!("; {left_out} without a price list left out"),
        };
        let (predicted, counters) = (c.predicted_usd, c.counters_usd);
        let off = 100.0 * (predicted / counters.max(f64::MIN_POSITIVE) - 1.0);
        let usd = format!("predicted {predicted:.4} USD   counters {counters:.4} USD");
        row("input cost", format!("{usd}   {off:+.2} %{unpriced}"));
    }
    match v.misses.len() {
        0 => row("misses", "none".into()),
        n => {
            let usd: f64 = v.causes.values().map(|c| c.usd).sum();
            row("misses", format!("{n}, {usd:.4} USD more than reads from the cache"));
            misses(out, v);
        }
    }
    counts(out, v);
    out.push('\n');
}

fn misses(out: &mut String, v: &Validated) {
    let mut causes: Vec<_> = v.causes.iter().collect();
    causes.sort_by(|a, b| b.1.usd.total_cmp(&a.1.usd).then(a.0.cmp(b.0)));
    for (cause, CauseTotal { misses, tokens, usd }) in causes {
        let tokens = format!("{tokens:>10} tokens not read {usd:>10.4} USD");
        *out += &format!("    {:<20} {misses:>5} × {tokens}\n", cause.name());
    }
    for m in &v.misses {
        let gap = m.gap_s.map_or("n/a".into(), |s| format!("{s:.0} s"));
        let right = if m.predicted { "predicted" } else { "NOT predicted" };
        let usd = m.usd.map_or("n/a".into(), |usd| format!("{usd:.4} USD"));
        let left =
            format!("left {:>8} read {:>8} predicted {:>8}", m.left, m.read, m.predicted_read);
        let why = format!("{right}   {}: {}", m.cause.name(), m.evidence);
        *out += &format!("    line {:<6} after {gap:<8} {left}   {usd:>10}   {why}\n", m.line);
    }
}

fn counts(out: &mut String, v: &Validated) {
    let b = &v.bias;
    if b.calls > 0 {
        let added = pluralize(b.calls, "call");
        let ratio = b.ratio.map_or("n/a".to_string(), |x| format!("{x:.3}"));
        let tokens = format!("{ratio} ({} ÷ {} tokens)", b.provider, b.ours);
        *out += "  token counts  provider ÷ ours (o200k) over what ";
        *out += &format!("{added} added: {tokens}\n");
    }
}
