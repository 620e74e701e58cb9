//! `ctxbench advise`: shows the effect of other settings of an agent on your last sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::choice::{self, Choice};
use anyhow::bail;
use ctxbench_core::model::{self, Model};
use ctxbench_core::settings::{Setting, UserKind, UserSetting, Value};
use ctxbench_mock::Transport;
use ctxbench_replay::billing::{self, SessionCalls};
use ctxbench_replay::recorded::about_prices;
use ctxbench_replay::run::{Plan, all_cores};
use ctxbench_replay::versions;
use ctxbench_replay::{Options, models};
use ctxbench_reports::advise::{
    Advice, Candidate, LeftOut, SettingChange, Tried, advise as judge, combinations, disagreement,
    effect, to_text,
};
use ctxbench_reports::one_line;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::{Spec, all};
use ctxbench_util::plural::pluralize;
use serde_json::json;

use super::corpus::{Progress, load_usable};
use super::specs;
use super::values::{many, tokens};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ctxbench advise ~/.claude/projects
      Show the line to write into your settings, if any
")]
pub(crate) struct AdviseArgs {
    /// Your recordings: files and folders, as for `run`, such as ~/.claude/projects
    #[arg(value_name = "SESSION|DIR")]
    inputs: Vec<String>,
    /// Take the N newest usable sessions
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Context window in tokens, such as 200000 or 200k (default: the model's)
    #[arg(long, value_name = "N", value_parser = tokens)]
    window: Option<u64>,
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    jobs: Option<u64>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn advise(args: &AdviseArgs) -> anyhow::Result<()> {
    ctxbench_os::shutdown::exit_on_signals();
    if args.inputs.is_empty() {
        bail!("advise takes your recordings, such as: ctxbench advise ~/.claude/projects");
    }
    let products = products(args)?;
    let mut skipped = Skipped::default();
    let choice = Choice {
        last: Some(args.last),
        min_tokens: args.min_tokens,
        since: args.since.clone(),
        ..Choice::default()
    };
    let sessions = load_usable(&args.inputs, &choice, &mut |s| match of_use(s, &products) {
        Ok(()) => true,
        Err(why) => {
            skipped.entry(why).or_default().push(s.id.clone());
            false
        }
    })?;
    let sessions = each_once(sessions, &mut skipped);
    if sessions.is_empty() && args.product.is_empty() {
        let names: Vec<&str> = products.iter().map(|p| p.descriptor.name).collect();
        bail!(
            "no session to advise on; expected recordings of {} with the provider's counters{}",
            names.join(", "),
            notes(&skipped).iter().map(|l| format!("; {l}")).collect::<String>()
        );
    }
    let all = sessions.iter().flat_map(remarks).chain(versions::notes(&sessions));
    for remark in all.collect::<BTreeSet<String>>() {
        report!("note: {remark}");
    }
    let mut by_product: Vec<Vec<Scenario>> = products.iter().map(|_| Vec::new()).collect();
    for s in sessions {
        let own = products.iter().position(|p| recorded_by(&s) == Some(p.descriptor.name));
        if let Some(own) = own {
            by_product[own].push(s);
        }
    }
    let asked = !args.product.is_empty();
    let all: Vec<Advice> = products
        .iter()
        .zip(by_product)
        .filter(|(_, own)| asked || !own.is_empty())
        .map(|(product, own)| of_product(args, product, own))
        .collect::<anyhow::Result<_>>()?;
    if args.json {
        let out = json!({"last": args.last, "advice": all, "skipped": skipped});
        return super::print_json(&out);
    }
    let mut pages: Vec<String> = all.iter().map(to_text).collect();
    let told = notes(&skipped);
    if !told.is_empty() {
        pages.push(format!("Skipped: {}\n", told.join("; ")));
    }
    super::print(&pages.join("\n"))
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
        return Err(match knobs {
            true => format!("recorded by {}, which is not selected", one_line(program)),
            false => {
                format!("recorded by {}, which has no documented settings here", one_line(program))
            }
        });
    }
    if !s.session.has_counters() {
        return Err("without the provider's counters".into());
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
        let why = format!("with the calls of {}, which is taken", one_line(other));
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

    fn run(&mut self) {
        if !self.plan.scenarios.is_empty() {
            self.runs.extend(records(&self.plan));
        }
        self.plan.specs.clear();
    }

    /// Tries the cheaper model of each session's provider for all summaries: as the setting of the
    /// product, or without one as a change that nobody can write.
    fn add_cheaper_model(&mut self) -> anyhow::Result<()> {
        let own = |s: &Scenario| models::own(&s.session);
        let all: BTreeMap<&str, &Model> =
            self.plan.scenarios.iter().map(own).map(|m| (&*m.weak, m)).collect();
        let about = &self.product.descriptor;
        let keys = about.settings.iter().flat_map(|s| s.keys.iter().map(move |k| (s, k)));
        let is_model = |(s, k): &(&Setting, &UserSetting)| {
            k.kind == UserKind::Model && s.is_read_by(self.product.version.name)
        };
        let key = { keys }.find(is_model);
        if let ([(weak, model)], Some((setting, key)), Some(file)) =
            (&all.iter().collect::<Vec<_>>()[..], key, &about.settings_file)
        {
            let provider = serde_json::to_value(model.provider)?;
            let provider = provider.as_str().unwrap_or_default();
            let named = Value::Word(format!("{provider}/{weak}").into());
            return self.add(
                &[SettingChange {
                    setting: setting.name.into(),
                    value: weak.to_string(),
                    line: file.line(key, &named),
                    place: file.place.into(),
                    documented: key.documented.unwrap_or(file.documented).into(),
                }],
                None,
            );
        }
        let names = all.keys().copied().collect::<Vec<_>>().join(", ");
        let label = format!("{} with summaries by {names}", self.product.label());
        let scenarios = std::mem::take(&mut self.plan.scenarios);
        let specs = std::mem::replace(&mut self.plan.specs, vec![self.product.clone()]);
        for weak in all.keys() {
            self.plan.scenarios =
                scenarios.iter().filter(|s| *own(s).weak == **weak).cloned().collect();
            self.plan.options.summary_model = model::find(weak).ok();
            let rows = records(&self.plan).into_iter();
            self.runs.extend(rows.map(|mut r| {
                r.strategy.label.clone_from(&label);
                r
            }));
        }
        self.plan.specs = specs;
        self.plan.options.summary_model = None;
        self.plan.scenarios = scenarios;
        let settings = vec![SettingChange {
            setting: "summaries".into(),
            value: names,
            line: String::new(),
            place: String::new(),
            documented: String::new(),
        }];
        self.changes.push(Candidate { label, settings, extends: None });
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
    plan.specs.clear();
    let mut all = Candidates { plan, product: product.clone(), changes: vec![], runs };
    let mut limits = Vec::new();
    for (file, setting, knob) in product.knobs() {
        for value in &knob.values {
            let turned = product.clone().with(setting.name, value)?;
            let given = turned.settings.explicit().find(|(name, _)| *name == setting.name);
            let Some((_, value)) = given else { continue };
            let change = SettingChange {
                setting: setting.name.into(),
                value: value.to_string(),
                line: file.line(knob, value),
                place: file.place.into(),
                documented: knob.documented.unwrap_or(file.documented).into(),
            };
            all.add(&[change], None)?;
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
    Plan { scenarios, specs, options, jobs, ..Plan::default() }
}

fn records(plan: &Plan) -> Vec<RunRecord> {
    let shown = Progress::new("rows", plan.pairs());
    plan.run(&|_| shown.step())
}
