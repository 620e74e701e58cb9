//! `ctxbench advise`: shows the effect of other settings of an agent on your last sessions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::choice::{self, Choice};
use anyhow::{Context, bail};
use ctxbench_core::model::{self, Model};
use ctxbench_core::settings::{Setting, UserKind, UserSetting, Value};
use ctxbench_mock::Transport;
use ctxbench_replay::billing::{self, SessionCalls};
use ctxbench_replay::recorded::about_prices;
use ctxbench_replay::run::{Plan, all_cores};
use ctxbench_replay::{Options, models, versions};
use ctxbench_reports::advise::{
    Advice, Candidate, LeftOut, SettingChange, Tried, advise as judge, combinations, disagreement,
    effect, to_summary, to_text, write,
};
use ctxbench_reports::one_line;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::{LoadError, Scenario};
use ctxbench_strategies::descriptor::SettingsFile;
use ctxbench_strategies::{Spec, all};
use ctxbench_util::plural::pluralize;
use serde_json::json;

use super::corpus::{Progress, load_usable};
use super::folders;
use super::specs;
use super::values::{count, many, tokens};

#[derive(clap::Args)]
pub(crate) struct AdviseArgs {
    /// Your recordings: files and folders, as for `run` (default: the session folders of Claude
    /// Code, Codex, OpenCode, pi and Gemini CLI)
    #[arg(value_name = "SESSION|DIR")]
    inputs: Vec<String>,
    /// Take the N newest usable sessions; without files and folders, of each agent
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = count)]
    last: u64,
    /// Take sessions with at least N tokens of content, such as 50k; short ones never compact
    #[arg(long, value_name = "N", value_parser = tokens)]
    min_tokens: Option<u64>,
    /// Take sessions that began on this day or later, UTC
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = choice::day)]
    since: Option<String>,
    /// Only this product with your settings, such as codex, codex@0.104 or
    /// claude-code:threshold_percent=70 (repeat; default: all with shipped settings)
    #[arg(long, value_name = "P[:k=v,…]")]
    product: Vec<String>,
    /// Settings file of a product with your settings, such as opencode.jsonc or Codex's config.toml
    /// (repeat)
    #[arg(long, value_name = "FILE")]
    settings: Vec<PathBuf>,
    /// Context window in tokens, such as 200000 or 200k (default: the
    /// program's for the model)
    #[arg(long, value_name = "N", value_parser = tokens)]
    window: Option<u64>,
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = count)]
    jobs: Option<u64>,
    /// Also print each session, all limits, and the reason for each omitted session
    #[arg(long)]
    details: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Folder for advice.html, advice.md and a picture of each product
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn advise(args: &AdviseArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    if let Some(dir) = &args.out {
        let made = std::fs::create_dir_all(dir);
        made.with_context(|| format!("--out: cannot make the folder {}", dir.display()))?;
    }
    let products = products(args)?;
    let (sessions, skipped) = sessions(args, &products)?;
    if args.details {
        let all = sessions.iter().flat_map(remarks).chain(versions::notes(&sessions));
        all.collect::<BTreeSet<String>>().iter().for_each(|remark| report!("note: {remark}"));
    }
    let mut by_product: Vec<(&Spec, Vec<Scenario>)> =
        products.iter().map(|p| (p, Vec::new())).collect();
    for s in sessions {
        let own = by_product.iter_mut().find(|(p, _)| recorded_by(&s) == Some(p.descriptor.name));
        if let Some((_, all)) = own {
            all.push(s);
        }
    }
    by_product.retain(|(_, own)| !args.product.is_empty() || !own.is_empty());
    by_product.sort_by_key(|(_, own)| Reverse(own.len()));
    let all: Vec<Advice> = by_product
        .into_iter()
        .map(|(product, own)| of_product(args, product, own))
        .collect::<anyhow::Result<_>>()?;
    if args.json {
        super::print_json(&json!({"last": args.last, "advice": all, "skipped": skipped}))?;
    } else {
        super::print(&text(args, &all, &skipped))?;
    }
    let Some(dir) = &args.out else { return Ok(()) };
    let program = concat!("ctxbench ", env!("CARGO_PKG_VERSION"));
    super::report::write_files(dir, &[], |files| write(&all, program, &command_line(), files))
}

/// Formats the advice: for the product with most sessions with its table, for others the decisions
/// only.
fn text(args: &AdviseArgs, all: &[Advice], skipped: &Skipped) -> String {
    let format = |(i, a)| match args.details || i == 0 {
        true => to_text(a, args.details),
        false => to_summary(a),
    };
    let mut parts: Vec<String> = all.iter().enumerate().map(format).collect();
    let omitted = skipped.values().map(Vec::len).sum();
    match (args.details, omitted) {
        (true, 0) => {}
        (true, _) => parts.push(format!("Skipped: {}\n", notes(skipped).join("; "))),
        (false, 0) => parts.push(format!("{MORE}\n")),
        (false, n) => parts.push(format!("{} skipped. {MORE}\n", pluralize(n, "session"))),
    }
    parts.join("\n")
}

const MORE: &str = "More: --details. For a design review: --out DIR.";

/// The command line, with `~` for the home folder.
fn command_line() -> String {
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    let shown = |arg: OsString| match home.as_ref().map(|home| Path::new(&arg).strip_prefix(home)) {
        Some(Ok(below)) => format!("~/{}", below.display()),
        _ => arg.to_string_lossy().into_owned(),
    };
    let arguments = std::env::args_os().skip(1).map(shown);
    std::iter::once("ctxbench".into()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Loads the sessions to use, from the arguments or the folders of the products. Fails if there are
/// none and no product was asked for.
fn sessions(args: &AdviseArgs, products: &[Spec]) -> anyhow::Result<(Vec<Scenario>, Skipped)> {
    let names: Vec<&str> = products.iter().map(|p| p.descriptor.name).collect();
    let mut skipped = Skipped::default();
    let choice = Choice {
        last: Some(args.last),
        min_tokens: args.min_tokens,
        since: args.since.clone(),
        ..Choice::default()
    };
    let mut load = |inputs: &[String]| {
        load_usable(inputs, &choice, &mut |s| match of_use(s, products) {
            Ok(()) => true,
            Err(why) => {
                skipped.entry(why).or_default().push(s.id.clone());
                false
            }
        })
    };
    let mut sessions = Vec::new();
    let is_own = |(agent, _): &&(&str, PathBuf)| names.contains(agent);
    let found = if args.inputs.is_empty() { folders::found() } else { Vec::new() };
    if args.inputs.is_empty() {
        for (_, folder) in found.iter().filter(is_own) {
            match load(&[folder.display().to_string()]) {
                Ok(own) => sessions.extend(own),
                // An agent that has no session yet.
                Err(e) if e.downcast_ref().is_some_and(LoadError::is_other) => {}
                Err(e) => report!("note: {}", super::error_chain(&e)),
            }
        }
    } else {
        sessions = load(&args.inputs)?;
    }
    let sessions = each_once(sessions, &mut skipped);
    let has_folder = found.iter().any(|folder| is_own(&folder));
    let is_empty = sessions.is_empty() && (args.product.is_empty() || !has_folder);
    if args.inputs.is_empty() && is_empty {
        let selected = match (&args.since, args.min_tokens) {
            (None, None) => "",
            _ => " that --since and --min-tokens select",
        };
        bail!(
            "no sessions found to advise on{selected}{}; searched for those of{}{}\nGive a file or a folder: \
             ctxbench advise ~/.claude/projects",
            notes(&skipped).iter().map(|l| format!("; {l}")).collect::<String>(),
            (folders::places().iter().filter(is_own))
                .map(|(agent, place)| format!("\n  {agent:<12} {}", place.display()))
                .collect::<String>(),
            others(&found)
        );
    }
    if sessions.is_empty() && args.product.is_empty() {
        bail!(
            "no session to advise on; expected recordings of {} with the provider's counters{}",
            names.join(", "),
            notes(&skipped).iter().map(|l| format!("; {l}")).collect::<String>()
        );
    }
    Ok((sessions, skipped))
}

/// Names the agents with folders but without settings to try, in a separate line.
fn others(found: &[(&str, PathBuf)]) -> String {
    let mut others: Vec<&str> = found.iter().map(|(agent, _)| *agent).collect();
    let has_knobs = |agent: &str| all().any(|d| d.name == agent && d.knobs().next().is_some());
    others.retain(|agent| !has_knobs(agent));
    others.dedup();
    if others.is_empty() {
        return String::new();
    }
    format!(
        "\nThere are folders of {}, whose settings cannot be tried here. `ctxbench list sessions` \
         lists them, and `ctxbench explain FILE --next` shows the cost of a compaction.",
        others.join(", ")
    )
}

/// Returns the selected products with the user's settings. Without a selection, returns all
/// products that have settings to try.
fn products(args: &AdviseArgs) -> anyhow::Result<Vec<Spec>> {
    let with_knobs = || all().filter(|d| d.knobs().next().is_some()).map(|d| d.name);
    let named: Vec<String> = match &args.product[..] {
        [] => with_knobs().map(str::to_string).collect(),
        named => named.to_vec(),
    };
    let mut out: Vec<Spec> = Vec::new();
    for text in &named {
        let spec = Spec::parse(text)?;
        let name = spec.descriptor.name;
        if spec.knobs().next().is_none() {
            let known: Vec<&str> = with_knobs().collect();
            bail!(
                "--product: {name} has no documented setting to advise on; those that have are {}",
                known.join(", ")
            );
        }
        if spec.version.is_description() {
            bail!(
                "--product: {text} is not a release of {name}; expected NAME[@VERSION][:setting=value,…]"
            );
        }
        if out.iter().any(|p| p.descriptor.name == name) {
            bail!("--product: {name} is given twice; it is set one way now");
        }
        out.push(spec);
    }
    specs::fill(&mut out, &args.settings, "--product")?;
    Ok(out)
}

/// Returns the name of the program that recorded a session, if known.
fn recorded_by(s: &Scenario) -> Option<&str> {
    s.session.header.source.as_ref().map(|s| s.format.as_str())
}

/// Checks whether a session is usable. The error is the reason to skip it.
fn of_use(s: &Scenario, products: &[Spec]) -> Result<(), String> {
    let Some(program) = recorded_by(s) else {
        return Err("not recorded by a program".into());
    };
    if !products.iter().any(|p| p.descriptor.name == program) {
        let knobs = all().any(|d| d.name == program && d.knobs().next().is_some());
        let why = if knobs { "is not selected" } else { "has no documented settings here" };
        return Err(format!("recorded by {}, which {why}", one_line(program)));
    }
    if !s.session.has_counters() {
        return Err("without the provider's counters".into());
    }
    if s.session.header.source.as_ref().is_some_and(|source| source.continues) {
        return Err("continuing a conversation that its file lacks".into());
    }
    if models::recorded(&s.session).is_none() {
        let model = s.session.header.model.as_deref().map_or("an unknown model".into(), one_line);
        return Err(format!(
            "of {model}, with unknown prices and window (add it to a --models file)"
        ));
    }
    Ok(())
}

/// Leaves out sessions that share calls with a longer one.
fn each_once(mut sessions: Vec<Scenario>, skipped: &mut Skipped) -> Vec<Scenario> {
    let calls: Vec<SessionCalls> = sessions.iter().map(|s| SessionCalls::new(&s.session)).collect();
    billing::bill_once(&mut sessions, &calls);
    sessions.retain_mut(|s| {
        s.billed_elsewhere.clear();
        let Some(other) = &s.counted_as else { return true };
        let why = format!("with the calls or messages of {}, which is taken", one_line(other));
        skipped.entry(why).or_default().push(s.id.clone());
        false
    });
    sessions
}

/// Returns notes on the costs of a session.
fn remarks(s: &Scenario) -> Vec<String> {
    let of_session = models::remarks(&s.session, models::own(&s.session));
    // `of_session` has the notes on the main model. Subagents may use other models.
    let own = s.session.header.model.as_deref();
    of_session.chain(about_prices(&s.session, own)).collect()
}

/// Maximum number of skipped sessions named per line.
const NAMED: usize = 3;

/// Skipped sessions, by the reason.
type Skipped = BTreeMap<String, Vec<String>>;

fn notes(skipped: &Skipped) -> Vec<String> {
    let note = |(why, ids): (&String, &Vec<String>)| {
        let named: Vec<String> = ids.iter().take(NAMED).map(|id| one_line(id)).collect();
        let more = if ids.len() > NAMED { ", …" } else { "" };
        format!("{} {why} ({}{more})", pluralize(ids.len(), "session"), named.join(", "))
    };
    skipped.iter().map(note).collect()
}

/// Candidates with their rows, of one product.
struct Candidates {
    plan: Plan,
    product: Spec,
    changes: Vec<Candidate>,
    runs: Vec<RunRecord>,
}

impl Candidates {
    /// Tries the product with one or two changed settings.
    fn add(&mut self, settings: &[SettingChange], extends: Option<&str>) -> anyhow::Result<()> {
        let mut spec = self.product.clone();
        for s in settings {
            spec = spec.with(&s.setting, &s.value)?;
        }
        let label = spec.label();
        if label != self.product.label() {
            self.plan.specs.push(spec);
            let (settings, extends) = (settings.to_vec(), extends.map(str::to_string));
            self.changes.push(Candidate { label, settings, extends });
        }
        Ok(())
    }

    /// Tries a value of one setting, which its file has as `written`.
    fn add_value(
        &mut self,
        (file, setting, key): (&SettingsFile, &Setting, &UserSetting),
        value: String,
        written: &Value,
    ) -> anyhow::Result<()> {
        let today = self.product.settings.all().find(|(name, _)| *name == setting.name);
        let change = SettingChange {
            setting: setting.name.into(),
            value,
            today: today.map(|(_, value)| value.to_string()).unwrap_or_default(),
            line: file.line(key, written),
            place: file.place.into(),
            documented: key.documented.unwrap_or(file.documented).into(),
        };
        self.add(&[change], None)
    }

    fn run(&mut self) {
        if !self.plan.scenarios.is_empty() {
            self.runs.extend(records(&self.plan));
        }
        self.plan.specs.clear();
    }

    /// Tries the cheaper model of each session's provider for all summaries: as the setting of the
    /// product, or without one as a change that a user cannot make.
    fn add_cheaper_model(&mut self) -> anyhow::Result<()> {
        let own = |s: &Scenario| models::own(&s.session);
        let all: BTreeMap<&str, &Model> =
            self.plan.scenarios.iter().map(own).map(|m| (&*m.weak, m)).collect();
        let about = &self.product.descriptor;
        let mut keys = about.settings.iter().flat_map(|s| s.keys.iter().map(move |k| (s, k)));
        let key = keys
            .find(|(s, k)| k.kind == UserKind::Model && s.is_read_by(self.product.version.name));
        if let ([(weak, model)], Some((setting, key)), Some(file)) =
            (&all.iter().collect::<Vec<_>>()[..], key, &about.settings_file)
        {
            let provider = serde_json::to_value(model.provider)?;
            let written = format!("{}/{weak}", provider.as_str().unwrap_or_default());
            let written = Value::Word(written.into());
            return self.add_value((file, setting, key), weak.to_string(), &written);
        }
        let value = all.keys().copied().collect::<Vec<_>>().join(", ");
        let label = format!("{} with summaries by {value}", self.product.label());
        for weak in all.keys() {
            let of_weak = |s: &&Scenario| *own(s).weak == **weak;
            let plan = Plan {
                scenarios: self.plan.scenarios.iter().filter(of_weak).cloned().collect(),
                specs: vec![self.product.clone()],
                options: Options {
                    summary_model: model::find(weak).ok(),
                    ..self.plan.options.clone()
                },
                jobs: self.plan.jobs,
                as_recorded: true,
                ..Plan::default()
            };
            for mut row in records(&plan) {
                row.strategy.label.clone_from(&label);
                self.runs.push(row);
            }
        }
        let change =
            SettingChange { setting: "summaries".into(), value, ..SettingChange::default() };
        self.changes.push(Candidate { label, settings: vec![change], extends: None });
        Ok(())
    }
}

fn of_product(
    args: &AdviseArgs,
    product: &Spec,
    sessions: Vec<Scenario>,
) -> anyhow::Result<Advice> {
    let label = product.label();
    let mut plan = plan(args, sessions, vec![product.clone()]);
    let mut runs = records(&plan);
    let mut recorded = plan.recorded();
    let effect = match recorded.is_empty() {
        true => String::new(),
        false => effect(&versions_of(&plan.scenarios), &recorded, &runs),
    };
    let mut left_out = Vec::new();
    plan.scenarios.retain(|s| {
        let of = |all: &[RunRecord]| all.iter().find(|r| r.scenario.id == s.id).cloned();
        let why = match (of(&recorded), of(&runs)) {
            (Some(recorded), Some(ours)) => disagreement(&recorded, &ours),
            _ => Some("it could not be run".into()),
        };
        let usable = why.is_none();
        left_out.extend(why.map(|why| LeftOut { session: s.id.clone(), why }));
        usable
    });
    let used = |r: &RunRecord| !left_out.iter().any(|l| l.session == r.scenario.id);
    runs.retain(used);
    recorded.retain(used);
    let started = plan.scenarios.iter().filter_map(|s| s.session.header.started.as_ref());
    let newest = started.max().and_then(|t| t.get(..10)).map(str::to_string);
    plan.specs.clear();
    let mut all = Candidates { plan, product: product.clone(), changes: vec![], runs };
    let mut limits = Vec::new();
    for (file, setting, knob) in product.knobs() {
        for value in &knob.values {
            let turned = product.clone().with(setting.name, value)?;
            let given = turned.settings.explicit().find(|(name, _)| *name == setting.name);
            let Some((_, value)) = given else { continue };
            all.add_value((file, setting, knob), value.to_string(), value)?;
        }
        if !knob.caveat.is_empty() {
            limits.push(knob.caveat.to_string());
        }
    }
    if !all.plan.scenarios.is_empty() {
        all.add_cheaper_model()?;
    }
    all.run();
    let advice = |all: &Candidates| {
        judge(Tried {
            product: &label,
            changes: all.changes.clone(),
            runs: &all.runs,
            recorded: &recorded,
            left_out: left_out.clone(),
            limits: limits.clone(),
            effect: effect.clone(),
            newest: newest.clone(),
        })
    };
    let single = advice(&all);
    for [lead, other] in combinations(&single) {
        let settings = [lead.settings.clone(), other.settings.clone()].concat();
        all.add(&settings, Some(&lead.label))?;
    }
    if all.plan.specs.is_empty() {
        return Ok(single);
    }
    all.run();
    Ok(advice(&all))
}

/// Names the versions of the program that recorded these sessions, in parentheses.
fn versions_of(sessions: &[Scenario]) -> String {
    let sources = sessions.iter().filter_map(|s| s.session.header.source.as_ref());
    let all: BTreeSet<String> =
        sources.filter_map(|f| Some(one_line(f.version.as_ref()?))).collect();
    let named = all.into_iter().collect::<Vec<_>>().join(", ");
    if named.is_empty() { named } else { format!(" ({named})") }
}

fn plan(args: &AdviseArgs, scenarios: Vec<Scenario>, specs: Vec<Spec>) -> Plan {
    let options =
        Options { transport: Transport::Direct, window: args.window, ..Options::default() };
    let jobs = args.jobs.map_or_else(all_cores, many);
    Plan { scenarios, specs, options, jobs, as_recorded: true, ..Plan::default() }
}

fn records(plan: &Plan) -> Vec<RunRecord> {
    let shown = Progress::new("rows", plan.pairs());
    plan.run(&|_| shown.step())
}
