//! `ctxbench described`: published descriptions of the products beside the releases, on the same
//! sessions.

use std::fmt::Write;

use crate::mock::Transport;
use crate::replay::Options;
use crate::run::{Plan, results};
use anyhow::bail;
use ctxbench_core::model;
use ctxbench_core::nearest;
use ctxbench_reports as reports;
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::{Scenario, builtin};
use ctxbench_strategies::descriptor::{Descriptor, Version};
use ctxbench_strategies::{Spec, all};

use super::corpus::load_all;

const EXAMPLES: &str = "\
Examples:
  ctxbench described
";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Sessions, recordings, scenarios or folders, as for `run` (default: the sessions of a run
    /// without arguments)
    #[arg(value_name = "SESSION|SCENARIO|DIR")]
    inputs: Vec<String>,
    /// Product (repeat; default: all that have been described)
    #[arg(long, value_name = "S")]
    strategy: Vec<String>,
    /// Model (default: the one a session was recorded with, else that of `run`)
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Context window in tokens, instead of the model's
    #[arg(long, value_name = "N", value_parser = super::run::tokens)]
    window: Option<u64>,
    /// Print the rows as JSON, in the form of results.json
    #[arg(long)]
    json: bool,
}

/// A product and what has been published of it.
struct Product {
    descriptor: &'static Descriptor,
    descriptions: Vec<Version>,
}

pub(crate) fn described(args: &Args) -> anyhow::Result<()> {
    crate::groups::end_with_us();
    let products = products(&args.strategy)?;
    let scenarios = match &args.inputs[..] {
        [] => builtin::defaults()?,
        named => load_all(named, &Default::default())?,
    };
    let mut specs = Vec::new();
    for p in &products {
        specs.push(Spec::parse(p.descriptor.name)?);
        for v in &p.descriptions {
            specs.push(Spec::parse(&format!("{}@{}", p.descriptor.name, v.name))?);
        }
    }
    let plan = Plan {
        scenarios,
        specs,
        models: args.model.as_deref().map(model::find).transpose()?.into_iter().collect(),
        options: Options {
            transport: Transport::Direct,
            window: args.window,
            ..Options::default()
        },
        ..Plan::default()
    };
    let records = plan.run(&|_| ()).into_iter().map(|f| f.replayed.record).collect();
    let all = results(&plan, records);
    if args.json {
        return super::print(&reports::results_text(&all)?);
    }
    super::print(&page(&products, &plan.scenarios, &all.runs))
}

/// Those of that name, or all that have a description.
fn products(named: &[String]) -> anyhow::Result<Vec<Product>> {
    let described: Vec<Product> = all()
        .map(|descriptor| {
            let all = descriptor.factory.versions();
            let descriptions = all.into_iter().filter(Version::is_description).collect();
            Product { descriptor, descriptions }
        })
        .filter(|p| !p.descriptions.is_empty())
        .collect();
    let names: Vec<&str> = described.iter().map(|p| p.descriptor.name).collect();
    if let Some(other) = named.iter().find(|n| !names.contains(&n.as_str())) {
        bail!("there is no description of `{other}`; {}", nearest::hint(other, &names));
    }
    let wanted = |p: &Product| named.is_empty() || named.iter().any(|n| n == p.descriptor.name);
    Ok(described.into_iter().filter(wanted).collect())
}

fn page(products: &[Product], scenarios: &[Scenario], rows: &[RunRecord]) -> String {
    let mut out = String::new();
    for p in products {
        let name = p.descriptor.name;
        let program = p.descriptor.factory.versions()[0].program;
        let _ = writeln!(out, "## {name}\n\n- `{name}`: {program} as released");
        for v in &p.descriptions {
            let _ = writeln!(out, "- `{name}@{}`: {}.", v.name, v.about.trim_end_matches('.'));
        }
        out +=
            "\n| session | strategy | steps | tokens in | cost $ | needs kept % | compactions |\n";
        out += "|---|---|--:|--:|--:|--:|--:|\n";
        let mut sums = Vec::new();
        for v in &p.descriptions {
            sums.push((v, Difference::default()));
        }
        for s in scenarios {
            let here: Vec<&RunRecord> = rows.iter().filter(|r| r.scenario.id == s.id).collect();
            for &base in here.iter().filter(|r| r.strategy.label == name) {
                let _ = writeln!(out, "| {} | `{name}` | {} |", s.id, own(base));
                for (v, sum) in &mut sums {
                    let label = format!("{name}@{}", v.name);
                    let same = |r: &&&RunRecord| r.strategy.label == label && r.model == base.model;
                    for row in here.iter().filter(same) {
                        let _ = writeln!(out, "| {} | `{label}` | {} |", s.id, beside(row, base));
                        sum.add(row, base);
                    }
                }
            }
        }
        out.push('\n');
        for (v, sum) in &sums {
            let _ = writeln!(out, "- `{name}@{}`: {}.", v.name, sum.sentence());
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Steps, and how a run ended that did not take them all.
fn steps(r: &RunRecord) -> String {
    let steps = format!("{}/{}", r.summary.steps_completed, r.summary.steps_total);
    match r.status {
        Status::Completed => steps,
        other => format!("{steps} {}", other.word()),
    }
}

fn own(r: &RunRecord) -> String {
    let s = &r.summary;
    format!(
        "{} | {} | {:.3} | {} | {}",
        steps(r),
        s.input_tokens,
        s.cost_usd,
        s.needs_kept_pct.map_or("n/a".into(), |x| format!("{x:.1}")),
        s.compactions
    )
}

/// The figures with their difference to those of the release. A run that did not finish measured
/// less work, and what it differs by says nothing.
fn beside(r: &RunRecord, base: &RunRecord) -> String {
    if !comparable(r, base) {
        return own(r);
    }
    let (s, b) = (&r.summary, &base.summary);
    let kept = match (s.needs_kept_pct, b.needs_kept_pct) {
        (Some(x), Some(y)) => format!("{x:.1} ({})", signed(x - y, 1)),
        _ => "n/a".into(),
    };
    format!(
        "{} | {} ({}) | {:.3} ({}) | {kept} | {} ({})",
        steps(r),
        s.input_tokens,
        share(s.input_tokens as f64, b.input_tokens as f64),
        s.cost_usd,
        share(s.cost_usd, b.cost_usd),
        s.compactions,
        signed(s.compactions as f64 - b.compactions as f64, 0)
    )
}

fn comparable(r: &RunRecord, base: &RunRecord) -> bool {
    r.is_whole() && base.is_whole()
}

/// A change, without a sign where it is shown as nothing.
fn signed(x: f64, decimals: usize) -> String {
    let text = format!("{x:+.decimals$}");
    let nothing = !text.bytes().any(|b| (b'1'..=b'9').contains(&b));
    if nothing { format!("±{}", &text[1..]) } else { text }
}

/// How much more than the base, per cent.
fn share(x: f64, base: f64) -> String {
    match base > 0.0 {
        true => format!("{} %", signed(100.0 * (x / base - 1.0), 1)),
        false => "n/a".into(),
    }
}

/// What a description costs over all sessions that both went through.
#[derive(Default)]
struct Difference {
    sessions: u64,
    left_out: Vec<String>,
    tokens: (f64, f64),
    usd: (f64, f64),
    compactions: (u64, u64),
    /// Sum of the differences in points, and of how many sessions.
    kept: (f64, u64),
}

impl Difference {
    fn add(&mut self, r: &RunRecord, base: &RunRecord) {
        if !comparable(r, base) {
            self.left_out.push(r.scenario.id.clone());
            return;
        }
        let (s, b) = (&r.summary, &base.summary);
        self.sessions += 1;
        self.tokens.0 += s.input_tokens as f64;
        self.tokens.1 += b.input_tokens as f64;
        self.usd.0 += s.cost_usd;
        self.usd.1 += b.cost_usd;
        self.compactions.0 += s.compactions;
        self.compactions.1 += b.compactions;
        if let (Some(x), Some(y)) = (s.needs_kept_pct, b.needs_kept_pct) {
            self.kept.0 += x - y;
            self.kept.1 += 1;
        }
    }

    fn sentence(&self) -> String {
        let without = match self.left_out.len() {
            0 => String::new(),
            _ => format!(
                "; left out, since one of the two did not go through: {}",
                self.left_out.join(", ")
            ),
        };
        if self.sessions == 0 {
            return format!("nothing to compare{without}");
        }
        let sessions = if self.sessions == 1 { "session" } else { "sessions" };
        let compactions = if self.compactions.0 == 1 { "compaction" } else { "compactions" };
        let kept = match self.kept.1 {
            0 => "n/a".into(),
            n => format!("{} points", signed(self.kept.0 / n as f64, 1)),
        };
        format!(
            "over {} {sessions} {} tokens, {} $ ({}), needs kept {kept}, {} {compactions} \
             instead of {}{without}",
            self.sessions,
            share(self.tokens.0, self.tokens.1),
            signed(self.usd.0 - self.usd.1, 3),
            share(self.usd.0, self.usd.1),
            self.compactions.0,
            self.compactions.1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_reports::record::{ScenarioInfo, Summary};

    fn run(tokens: u64, usd: f64, kept: Option<f64>, compactions: u64) -> RunRecord {
        RunRecord {
            scenario: ScenarioInfo { id: "s".into(), ..Default::default() },
            summary: Summary {
                input_tokens: tokens,
                cost_usd: usd,
                needs_kept_pct: kept,
                compactions,
                steps_completed: 3,
                steps_total: 3,
                ..Summary::default()
            },
            ..RunRecord::default()
        }
    }

    #[test]
    fn differences_by_hand() {
        let base = run(1_000, 2.0, Some(50.0), 4);
        let other = run(1_250, 1.5, Some(62.5), 1);
        assert_eq!(
            beside(&other, &base),
            "3/3 | 1250 (+25.0 %) | 1.500 (-25.0 %) | 62.5 (+12.5) | 1 (-3)"
        );
        assert_eq!(
            beside(&base, &base),
            "3/3 | 1000 (±0.0 %) | 2.000 (±0.0 %) | 50.0 (±0.0) | 4 (±0)"
        );
        let mut sum = Difference::default();
        sum.add(&other, &base);
        // The second session has nothing that is needed later: 2,250 of 2,000 tokens, 3 of 4 USD.
        sum.add(&run(1_000, 1.5, None, 2), &run(1_000, 2.0, None, 2));
        assert_eq!(
            sum.sentence(),
            "over 2 sessions +12.5 % tokens, -1.000 $ (-25.0 %), needs kept +12.5 points, 3 \
             compactions instead of 6"
        );
    }

    #[test]
    fn who_did_not_finish_is_not_compared() {
        let base = run(1_000, 2.0, Some(50.0), 4);
        let mut died = run(10, 0.1, None, 0);
        died.status = Status::Overflow;
        assert_eq!(beside(&died, &base), "3/3 overflow | 10 | 0.100 | n/a | 0");
        let mut sum = Difference::default();
        sum.add(&died, &base);
        assert_eq!(
            sum.sentence(),
            "nothing to compare; left out, since one of the two did not go through: s"
        );
    }

    #[test]
    fn every_description_is_taken_and_nothing_else() {
        let all = products(&[]).unwrap();
        let names: Vec<String> = all
            .iter()
            .flat_map(|p| {
                p.descriptions.iter().map(|v| format!("{}@{}", p.descriptor.name, v.name))
            })
            .collect();
        assert_eq!(
            names,
            [
                "aider@described-003",
                "codex@described-000",
                "codex@described-002",
                "opencode@described-001",
                "opencode@described-002",
                "claude-code@described-001",
                "claude-code@described-002",
                "anthropic-sdk@described-001"
            ]
        );
        let error = products(&["codx".into()]).err().unwrap().to_string();
        assert!(error.contains("did you mean codex?"), "{error}");
    }
}
