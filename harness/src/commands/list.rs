//! `ctxbench list` and `ctxbench show`.

use std::fmt::Write;

use anyhow::bail;
use ctxbench_core::model;
use ctxbench_core::settings::{SettingKind, Value};
use ctxbench_core::strategy::Standing;
use ctxbench_scenarios as scenarios;
use ctxbench_strategies::descriptor::Descriptor;
use ctxbench_strategies::{all, built_in};

use super::corpus::Progress;
use super::specs;
use crate::choice::Choice;
use ctxbench_agents::drive::agent;

#[derive(clap::Args)]
#[command(
    override_usage = "ctxbench list {strategies|scenarios|models|agents|sessions} [FILE|DIR]..."
)]
pub(crate) struct ListArgs {
    /// Kind of items
    #[arg(value_enum)]
    what: ListTopic,
    /// Print the comparison matrix as Markdown (strategies only)
    #[arg(long)]
    matrix: bool,
    /// Session files, recordings, archives and folders of these (sessions only; default: the session
    /// folders of your agents)
    #[arg(value_name = "FILE|DIR")]
    inputs: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    /// Random seed for --sample (default: 1)
    #[arg(long, value_name = "SEED", default_value_t = 1, hide_default_value = true)]
    seed: u64,
    /// One JSON object per line instead of a table (sessions only)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum, PartialEq)]
enum ListTopic {
    Strategies,
    Scenarios,
    Models,
    /// Agents for `drive`, with the installed version or the way to install them
    Agents,
    /// Recorded sessions: agent, model, date, steps, tokens, peak, compactions, cost
    Sessions,
}

#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    /// Strategy, such as codex, codex@0.104 or a program: NAME=exec:COMMAND
    strategy: String,
}

pub(crate) fn list(args: &ListArgs) -> anyhow::Result<()> {
    if args.matrix && args.what != ListTopic::Strategies {
        bail!("--matrix works with `list strategies` only");
    }
    let choice = Choice { seed: args.seed, ..args.choice.clone() };
    if args.what == ListTopic::Sessions {
        return super::survey::list(&args.inputs, &choice, args.json);
    }
    if args.json || !args.inputs.is_empty() || choice != (Choice { seed: 1, ..Choice::default() }) {
        bail!("files, --json and options that select sessions work with `list sessions` only");
    }
    let mut out = String::new();
    match args.what {
        ListTopic::Sessions => {}
        ListTopic::Strategies if args.matrix => out = matrix_markdown(),
        ListTopic::Strategies => {
            for d in all() {
                let versions = &d.versions;
                let version = versions[0].program();
                let _ =
                    writeln!(out, "{:<20} {version:<10} {:<14} {}", d.name, origin(d), d.summary);
                for v in &versions[1..] {
                    let about = v.about.split([':', '(']).next().unwrap_or_default().trim();
                    let _ = writeln!(out, "  {}@{:<24} {about}", d.name, v.name);
                }
            }
            out.push_str(ORIGINS);
        }
        ListTopic::Scenarios => {
            for s in scenarios::builtin::all()? {
                let _ = writeln!(out, "{:<28} {:<10} {}", s.id, s.tags.join(","), s.title);
                for code in &s.cites {
                    let name = scenarios::pitfalls::find(code)
                        .map(|name| format!(" ({name})"))
                        .unwrap_or_default();
                    let _ = writeln!(out, "{:<39} example of: {code}{name}", "");
                }
            }
        }
        ListTopic::Agents => agents(&mut out),
        ListTopic::Models => {
            let head = "USD per MTok: in / read / write / out";
            let _ = writeln!(out, "{:<22} {:>9} {:>9}   {head}", "model", "window", "output");
            for m in model::catalogue() {
                let p = &m.prices;
                let prices = format!("{} / {} / {} / {}", p.input, p.read, p.write_5m, p.output);
                let end = match (m.retired(), &m.deprecated) {
                    (Some(day), _) => format!("retired {day}"),
                    (None, Some(day)) => format!("until {day}"),
                    (None, None) => String::new(),
                };
                let row = format!(
                    "{:<22} {:>9} {:>9}   {prices:<28} {end}",
                    m.name, m.window, m.max_output
                );
                let _ = writeln!(out, "{}", row.trim_end());
            }
            let _ = writeln!(
                out,
                "prices: {}; --model also takes the exact name of {} more models of the price file",
                model::price_table(),
                model::unlisted_count()
            );
        }
    }
    super::print(&out)
}

/// Appends one line per agent.
fn agents(out: &mut String) {
    let all = agent::built_in();
    let shown = Progress::new("agents", all.len());
    // Some agents need many seconds to print their version.
    let here: Vec<String> = std::thread::scope(|scope| {
        let ask = |a| {
            let shown = &shown;
            scope.spawn(move || {
                let here = installed(a);
                shown.step();
                here
            })
        };
        let asked: Vec<_> = all.iter().map(ask).collect();
        asked.into_iter().map(|a| a.join().unwrap_or_default()).collect()
    });
    shown.clear();
    for (a, here) in all.iter().zip(here) {
        let tried = a.program.tried.as_deref().unwrap_or("untried");
        let row = a.strategy.as_deref().map_or("", |s| s.split([':', '@']).next().unwrap_or(s));
        let _ = writeln!(out, "{:<14} {tried:<9} {row:<12} {here}", a.name);
        if let Some(note) = &a.note {
            let _ = writeln!(out, "{:<37} {note}", "");
        }
    }
    out.push_str(AGENTS);
}

/// Describes how an agent is installed, or can be installed.
fn installed(a: &agent::Agent) -> String {
    match a.locate(None) {
        Ok(program) => {
            let version = a.version(&program, agent::PATIENCE);
            let version = version.unwrap_or_else(|why| format!("version unknown, {why}"));
            format!("installed: {version} ({})", program.display())
        }
        Err(_) => format!("not installed: {}", a.install),
    }
}

const AGENTS: &str = "
Columns: name for `drive --agent`, tested version, strategy for the comparison, installation. Describe your
own agent in a file: docs/drive.md
";

const ORIGINS: &str = "
model*  reimplementation, checked against recorded cases of the program: docs/fidelity.md
model   reimplementation from documentation and measurements
own     strategy of your crate
";

/// Returns the origin of a strategy, as listed in [`ORIGINS`].
fn origin(d: &'static Descriptor) -> &'static str {
    if !built_in().iter().any(|ours| ours.name == d.name) {
        "own"
    } else if d.recorded {
        "model*"
    } else {
        "model"
    }
}

/// Returns the comparison matrix: a head with the products, and one row per dimension.
pub(crate) fn matrix() -> Vec<Vec<String>> {
    let shown: Vec<_> = all().filter(|d| d.standing == Standing::Contender).collect();
    let mut head = vec![String::new()];
    head.extend(shown.iter().map(|d| {
        let program = d.versions[0].program();
        format!("{} {}", d.name, if program == "1" { "" } else { program })
    }));
    let products: Vec<_> = shown.iter().map(|d| d.answers()).collect();
    let rows = products[0].iter().enumerate().map(|(i, (name, _))| {
        let cells = products.iter().map(|r| r[i].1.to_string());
        std::iter::once(name.to_string()).chain(cells).collect()
    });
    std::iter::once(head).chain(rows).collect()
}

/// Returns the matrix as a Markdown table.
pub(crate) fn matrix_markdown() -> String {
    let matrix = matrix();
    let cell = |(i, cell): (usize, &String)| match i {
        0 => format!("**{cell}**"),
        _ => cell.replace('|', "\\|"),
    };
    let rows = matrix[1..].iter().map(|row| row.iter().enumerate().map(cell).collect());
    ctxbench_reports::markdown_table(&matrix[0], rows, |_| false)
}

pub(crate) fn run_show(args: &ShowArgs) -> anyhow::Result<()> {
    let spec = specs::parse_one(&args.strategy)?;
    let d = spec.descriptor;
    let mut out = format!("{} {}\n{}\n", d.name, spec.version.name, d.summary);
    let _ = writeln!(out, "manual compaction: {}", d.manual.words());
    let versions = &d.versions;
    if versions.len() > 1 {
        let _ = writeln!(out, "\nversions (select with {}@VERSION)", d.name);
        for v in versions {
            let _ = writeln!(out, "  {:<16}{}", v.name, v.about);
        }
    }
    for w in &d.windows {
        let models =
            if w.models.is_empty() { "other models".into() } else { format!("{}*", w.models) };
        let max = w.max.map_or(String::new(), |max| format!(", at most {max}"));
        let _ = writeln!(out, "window for {models}: {} tokens{max}", w.default);
    }
    out.push_str("\nsources\n");
    for s in &d.sources {
        let _ = writeln!(out, "  {s}");
    }
    if !d.settings.is_empty() {
        out.push_str("\nsettings\n");
    }
    for s in d.settings.iter().filter(|s| spec.reads(s.name)) {
        let default = match &s.default {
            Value::Word(w) => w.to_string(),
            value => value.to_string(),
        };
        let unit = match s.kind {
            SettingKind::Tokens => "tokens".to_string(),
            SettingKind::Limit => "tokens above 0".to_string(),
            SettingKind::Bytes => "bytes".to_string(),
            SettingKind::Count => "count".to_string(),
            SettingKind::Whole => "whole number".to_string(),
            SettingKind::Percent => "per cent, 0 to 100".to_string(),
            SettingKind::Share => "share from 0 to 1".to_string(),
            SettingKind::Millis => "ms".to_string(),
            SettingKind::Flag => "true or false".to_string(),
            SettingKind::Choice(words) => words.join(" | "),
            SettingKind::Text => "text".to_string(),
            SettingKind::Model => "model".to_string(),
        };
        let _ = writeln!(
            out,
            "  {}={default}  ({unit})\n      {}\n      from: {}",
            s.name, s.help, s.source
        );
    }
    out.push_str("\nwhat it does\n");
    for (name, answer) in d.answers() {
        let _ = writeln!(out, "  {name:<22}{answer}");
    }
    super::print(&out)
}
