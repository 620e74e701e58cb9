//! Running strategies × sessions × models, in parallel, each pair by itself.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use ctxbench_core::block::{BLOCK_TOKENS, IMAGE_TOKENS};
use ctxbench_core::descriptor::Standing;
use ctxbench_core::provider::{self, Model};
use ctxbench_core::record::{RESULTS_VERSION, Results, RunRecord, ScenarioInfo, Status, StrategyInfo};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use crate::replay::{Defaults, Options, Replayed, fill_savings, replay};
use crate::rewind::{Files, complete};
use crate::steering;
use crate::summarise::Summariser;

/// What is to be run.
#[derive(Debug)]
pub struct Plan {
    /// Sessions.
    pub scenarios: Vec<Scenario>,
    /// Strategies.
    pub specs: Vec<Spec>,
    /// Models.
    pub models: Vec<&'static Model>,
    /// How.
    pub options: Options,
    /// Who writes summaries, instead of the one in the options: a strategy that asks for summaries is run with each, others once.
    pub summarisers: Vec<Summariser>,
    /// With how many seeds a run is made that depends on them, from the one in the options on; others once. At least 1.
    pub seeds: u64,
    /// Threads.
    pub jobs: usize,
    /// Which part of the pairs: (index from 1, of how many).
    pub shard: Option<(usize, usize)>,
}

/// One finished pair.
#[derive(Debug)]
pub struct Finished {
    /// Record and trace.
    pub replayed: Replayed,
    /// Wall-clock time of our own code; never part of results.
    pub took: Duration,
}

impl Plan {
    /// Number of rows, if every strategy asks for summaries.
    pub fn pairs(&self) -> usize {
        let each: usize = self.summarisers.iter().map(|s| self.seeds_of(s).count()).sum();
        self.queue().len() * each.max(1)
    }

    /// The seeds with which a summariser is run.
    fn seeds_of(&self, summariser: &Summariser) -> impl Iterator<Item = u64> + use<> {
        let first = self.options.seed;
        first..first.saturating_add(if summariser.seeded() { self.seeds.max(1) } else { 1 })
    }

    fn queue(&self) -> VecDeque<(usize, usize, usize)> {
        let mut all = Vec::new();
        for s in 0..self.scenarios.len() {
            for k in 0..self.specs.len() {
                for m in 0..self.models.len() {
                    all.push((s, k, m));
                }
            }
        }
        if let Some((i, n)) = self.shard {
            all = all.into_iter().enumerate().filter(|(at, _)| at % n == i - 1).map(|(_, p)| p).collect();
        }
        // Longest first, so that no thread is left alone with the last one.
        all.sort_by_key(|(s, _, _)| std::cmp::Reverse(self.scenarios[*s].session.entries.len()));
        all.into()
    }

    /// Runs everything. `done` is called for each pair as it finishes, on the thread that ran it; `begun` before it.
    pub fn run(&self, begun: &(dyn Fn(&str) + Sync), done: &(dyn Fn(&Finished) + Sync)) -> Vec<Finished> {
        let queue = Mutex::new(self.queue());
        // The files of a session are the same for every strategy.
        let files: Vec<OnceLock<Files>> = self.scenarios.iter().map(|_| OnceLock::new()).collect();
        let finished = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while let Some((s, k, m)) = queue.lock().ok().and_then(|mut q| q.pop_front()) {
                        let (scenario, spec, model) = (&self.scenarios[s], &self.specs[k], self.models[m]);
                        begun(&format!("{} × {}", scenario.id, spec.label()));
                        let files = files[s].get_or_init(|| Files::of(&scenario.session));
                        let variants = self.summarisers.iter().flat_map(|s| self.seeds_of(s).map(move |seed| (s, seed)));
                        for (summariser, seed) in variants {
                            let mut one = self.one(scenario, spec, model, summariser, seed);
                            complete(&mut one.replayed.record, &scenario.session, files);
                            let asked = one.replayed.record.summariser.is_some();
                            one.replayed.record.seed = (asked && summariser.seeded() && self.seeds > 1).then_some(seed);
                            done(&one);
                            if let Ok(mut f) = finished.lock() {
                                f.push(one);
                            }
                            // Where no summary was asked for, nobody else and no other seed would have written another.
                            if !asked {
                                break;
                            }
                        }
                    }
                });
            }
        });
        let mut out = finished.into_inner().unwrap_or_default();
        out.sort_by_key(|f| key(&f.replayed.record));
        out
    }

    fn one(&self, scenario: &Scenario, spec: &Spec, model: &Model, summariser: &Summariser, seed: u64) -> Finished {
        let begin = Instant::now();
        if let Some(why) = spec.unfit(model) {
            let replayed = not_run(scenario, spec, model, Status::NotApplicable, why.to_string());
            return Finished { replayed, took: begin.elapsed() };
        }
        let run = || -> Result<Replayed, String> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
            let options = Options { summariser: summariser.clone(), seed, ..self.options.clone() };
            let mut replayed = runtime.block_on(replay(scenario, spec, model, &options));
            if spec.descriptor.manual && replayed.record.status == Status::Completed && steering::steers(scenario) {
                let options = Options { trace: false, ..options };
                let without = runtime.block_on(replay(&steering::silenced(scenario), spec, model, &options));
                replayed.record.steering = steering::compare(&scenario.session, &replayed.record, &without.record);
            }
            Ok(replayed)
        };
        let replayed = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(r)) => r,
            Ok(Err(e)) => not_run(scenario, spec, model, Status::Error, format!("the runtime could not be started: {e}")),
            Err(_) => not_run(
                scenario,
                spec,
                model,
                Status::Error,
                "the replay panicked; this is a fault of ctxbench, please report it".to_string(),
            ),
        };
        Finished { replayed, took: begin.elapsed() }
    }
}

fn key(r: &RunRecord) -> (String, String, String, Option<String>, Option<u64>) {
    (r.scenario.id.clone(), r.strategy.label.clone(), r.model.clone(), r.summariser.clone(), r.seed)
}

/// A row for a pair that could not be run.
fn not_run(scenario: &Scenario, spec: &Spec, model: &Model, status: Status, error: String) -> Replayed {
    let record = RunRecord {
        scenario: ScenarioInfo { id: scenario.id.clone(), title: scenario.title.clone(), scale: scenario.scale, ..Default::default() },
        strategy: StrategyInfo {
            label: spec.label(),
            name: spec.descriptor.name.into(),
            version: spec.version.into(),
            hypothetical: spec.descriptor.standing == Standing::Hypothetical,
            control: spec.descriptor.standing == Standing::Control,
            ..Default::default()
        },
        model: model.name.to_string(),
        status,
        error: Some(error),
        ..Default::default()
    };
    Replayed { record, trace: vec![], loadings: vec![], seen: Default::default() }
}

/// The results of finished pairs, savings filled in.
pub fn results(plan: &Plan, mut records: Vec<RunRecord>) -> Results {
    ctxbench_reports::sort_runs(&mut records);
    fill_savings(&mut records);
    Results {
        version: RESULTS_VERSION,
        generator: concat!("ctxbench ", env!("CARGO_PKG_VERSION")).into(),
        assumptions: assumptions(plan),
        runs: records,
    }
}

/// What modelled numbers rest on, by name.
fn assumptions(plan: &Plan) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut say = |k: &str, v: String| {
        out.insert(k.to_string(), v);
    };
    // Summaries are asked of other models, too.
    let weak = plan.models.iter().filter_map(|m| provider::find(&m.weak).ok());
    for m in plan.models.iter().copied().chain(weak).chain(plan.options.summary_model) {
        let l = m.latency;
        say(
            &format!("latency of {}", m.name),
            format!(
                "first token = {} + {}·uncached + {}·cached ms, then {} ms per output token (modelled)",
                l.a_ms, l.b_ms, l.c_ms, l.d_ms
            ),
        );
        say(&format!("prices of {}", m.name), m.source.clone());
    }
    let d = Defaults::STATED;
    let summaries = match &plan.summarisers[..] {
        [one @ (Summariser::Extractive | Summariser::Ideal | Summariser::Lossy { .. })] => {
            format!("written by the {} summariser (modelled)", one.name())
        }
        all => format!("written by {}", all.iter().map(Summariser::origin).collect::<Vec<_>>().join(", ")),
    };
    say("summaries", summaries);
    say("think time", format!("from the session, else {} s before a user message", d.think_ms / 1_000));
    say("tool time", format!("from the session, else {} s per step with calls; a re-read takes as long", d.tools_ms / 1_000));
    say("refusals", "take no time, unless a fault of the scenario says after how long they come; clients try again at once".to_string());
    let rereads = if plan.options.rereads { "once per loss, whole, charged (modelled)" } else { "switched off" };
    say("re-reads", rereads.to_string());
    say("billed tokens", format!("o200k of every block + {BLOCK_TOKENS} per block, {IMAGE_TOKENS} per image"));
    let first = plan.options.seed;
    say("seed", if plan.seeds > 1 { format!("{first} to {}, each for what is seeded", first + plan.seeds - 1) } else { first.to_string() });
    say("prompt cache", "simulated by the provider's rules".to_string());
    out
}
