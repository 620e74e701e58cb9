//! Running strategies × sessions × models, in parallel, each pair by itself.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use ctxbench_core::calibration::Calibrate;
use ctxbench_core::model::{self, Counting, Edge, Model};
use ctxbench_reports::Looks;
use ctxbench_reports::record::yardstick;
use ctxbench_reports::record::{AtEdge, RESULTS_VERSION, Results, RunRecord, Status};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::descriptor::{Descriptor, Look};
use ctxbench_strategies::{Spec, all};

use crate::models;
use crate::recorded;
use crate::replay::{
    self, Defaults, Options, Replayed, Shared, not_run, replay_with, with_savings,
};
use crate::steering;
use crate::summarise::Summariser;
use crate::twice;

/// What is to be run.
#[derive(Debug)]
pub struct Plan {
    /// Sessions.
    pub scenarios: Vec<Scenario>,
    /// Strategies.
    pub specs: Vec<Spec>,
    /// Models; none = each session's own, see [`models::own`].
    pub models: Vec<&'static Model>,
    /// How.
    pub options: Options,
    /// Who writes summaries, instead of the one in the options: a strategy that asks for summaries
    /// is run with each, others once.
    pub summarisers: Vec<Summariser>,
    /// With how many seeds a run is made that depends on them, from the one in the options on;
    /// others once. At least 1.
    pub seeds: u64,
    /// Run each pair at the edges of the counting model's error, too.
    pub edges: bool,
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

/// Nothing to run yet: each session's own model, one summariser, once, on all threads.
impl Default for Plan {
    fn default() -> Plan {
        Plan {
            scenarios: vec![],
            specs: vec![],
            models: vec![],
            options: Options::default(),
            summarisers: vec![Summariser::default()],
            seeds: 1,
            edges: false,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            shard: None,
        }
    }
}

impl Plan {
    /// What was recorded of the sessions that have counters, for the models they were recorded
    /// with.
    pub fn recorded(&self) -> Vec<RunRecord> {
        let here = |at: usize| self.shard.is_none_or(|(i, n)| at % n == i - 1);
        let sessions = self.scenarios.iter().enumerate().filter(|(at, _)| here(*at));
        sessions.flat_map(|(_, s)| recorded::rows(s, &self.models)).collect()
    }

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

    fn models_of(&self, scenario: &Scenario) -> Vec<&'static Model> {
        models::of(&scenario.session, &self.models)
    }

    /// The models of all sessions, each once.
    pub fn all_models(&self) -> Vec<&'static Model> {
        let mut all: Vec<&'static Model> = Vec::new();
        for model in self.scenarios.iter().flat_map(|s| self.models_of(s)) {
            if all.iter().all(|m| m.name != model.name) {
                all.push(model);
            }
        }
        all
    }

    fn queue(&self) -> VecDeque<(usize, usize, &'static Model)> {
        let mut all = Vec::new();
        for (s, scenario) in self.scenarios.iter().enumerate() {
            for k in 0..self.specs.len() {
                all.extend(self.models_of(scenario).into_iter().map(|m| (s, k, m)));
            }
        }
        if let Some((i, n)) = self.shard {
            all = all
                .into_iter()
                .enumerate()
                .filter(|(at, _)| at % n == i - 1)
                .map(|(_, p)| p)
                .collect();
        }
        // Longest first, so that no thread is left alone with the last one.
        all.sort_by_key(|(s, _, _)| std::cmp::Reverse(self.scenarios[*s].session.entries.len()));
        all.into()
    }

    /// Runs everything. `done` is called for each pair as it finishes, on the thread that ran it.
    pub fn run(&self, done: &(dyn Fn(&Finished) + Sync)) -> Vec<Finished> {
        let queue = Mutex::new(self.queue());
        let shared: Vec<OnceLock<Shared>> =
            self.scenarios.iter().map(|_| OnceLock::new()).collect();
        let finished = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    while let Some((s, k, model)) =
                        queue.lock().ok().and_then(|mut q| q.pop_front())
                    {
                        let (scenario, spec) = (&self.scenarios[s], &self.specs[k]);
                        let shared = shared[s].get_or_init(|| Shared::of(scenario));
                        let variants = self
                            .summarisers
                            .iter()
                            .flat_map(|s| self.seeds_of(s).map(move |seed| (s, seed)));
                        for (summariser, seed) in variants {
                            let one = self.one(scenario, spec, model, shared, summariser, seed);
                            let asked = one.replayed.record.summariser.is_some();
                            done(&one);
                            if let Ok(mut f) = finished.lock() {
                                f.push(one);
                            }
                            // Where no summary was asked for, nobody else and no other seed would
                            // have written another.
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

    fn one(
        &self,
        scenario: &Scenario,
        spec: &Spec,
        model: &Model,
        shared: &Shared,
        summariser: &Summariser,
        seed: u64,
    ) -> Finished {
        let begin = Instant::now();
        let run = || -> Result<Replayed, String> {
            if let Some(why) = spec.unfit(model) {
                return Ok(bare(not_run(
                    scenario,
                    spec,
                    model,
                    Status::NotApplicable,
                    why.to_string(),
                )));
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| format!("the runtime could not be started: {e}"))?;
            let options = Options { summariser: summariser.clone(), seed, ..self.options.clone() };
            let replay = |scenario: &Scenario, options: &Options| {
                runtime.block_on(replay_with(scenario, spec, model, options, shared)).replayed
            };
            let replayed = if spec.descriptor.factory.maker.is_run_twice() {
                let traced = Options { trace: true, ..options.clone() };
                let first = twice::held(replay(scenario, &traced), &replay(scenario, &traced));
                let trace = if options.trace { first.trace } else { vec![] };
                Replayed { trace, ..first }
            } else {
                replay(scenario, &options)
            };
            let record = replayed.record;
            let steering = if spec.descriptor.manual.exists()
                && replay::took_manual(&record)
                && record.status == Status::Completed
                && steering::steers(scenario)
            {
                let options = Options { trace: false, ..options.clone() };
                let without = replay(&steering::silenced(scenario), &options).record;
                steering::compare(&scenario.session, &record, &without)
            } else {
                None
            };
            let edges = self.at_edges(scenario, model, &|edge| {
                replay(scenario, &Options { trace: false, watch: None, edge, ..options.clone() })
            });
            let named = record.summariser.is_some() && summariser.seeded() && self.seeds > 1;
            let record = RunRecord { steering, edges, seed: named.then_some(seed), ..record };
            Ok(Replayed { record, ..replayed })
        };
        let failed = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(replayed)) => return Finished { replayed, took: begin.elapsed() },
            Ok(Err(why)) => why,
            Err(_) => "the replay panicked; this is a fault of ctxbench, please report it".into(),
        };
        let replayed = bare(not_run(scenario, spec, model, Status::Error, failed));
        Finished { replayed, took: begin.elapsed() }
    }

    /// A pair at the edges of the counting model's error, the lower first.
    fn at_edges(
        &self,
        scenario: &Scenario,
        model: &Model,
        replayed: &dyn Fn(Edge) -> Replayed,
    ) -> Vec<AtEdge> {
        let counting = replay::counting(&scenario.session, model, self.options.calibrate);
        if !self.edges || !counting.has_edges() {
            return vec![];
        }
        let (least, most) = counting.edges_pct();
        let edges = [(Edge::Low, least), (Edge::High, most)];
        let at = |(edge, counted_pct)| {
            let RunRecord { status, summary, .. } = replayed(edge).record;
            AtEdge { counted_pct, status, summary }
        };
        edges.into_iter().map(at).collect()
    }
}

/// A row without a replay.
fn bare(record: RunRecord) -> Replayed {
    Replayed { record, trace: vec![], loadings: vec![], seen: Default::default() }
}

fn key(r: &RunRecord) -> (String, String, String, Option<String>, Option<u64>) {
    (r.scenario.id.clone(), r.strategy.label.clone(), r.model.clone(), r.summariser.clone(), r.seed)
}

/// The results of finished pairs, with savings.
pub fn results(plan: &Plan, mut records: Vec<RunRecord>) -> Results {
    ctxbench_reports::sort_runs(&mut records);
    Results {
        version: RESULTS_VERSION,
        generator: concat!("ctxbench ", env!("CARGO_PKG_VERSION")).into(),
        assumptions: assumptions(plan),
        goals: Vec::new(),
        runs: with_savings(records),
    }
}

/// How strategies are drawn.
pub fn looks() -> Looks {
    let hue = |d: &Descriptor| match d.look {
        Look::Hue(hue) => Some((d.name, hue)),
        Look::Grey { .. } => None,
    };
    let dashed = |d: &&Descriptor| d.look == Look::Grey { dashed: true };
    Looks {
        hues: all().filter_map(hue).collect(),
        dashed: all().filter(dashed).map(|d| d.name).collect(),
    }
}

/// Results of stored rows, with what follows from comparing them.
pub fn completed(results: Results) -> Results {
    Results { runs: with_savings(results.runs), ..results }
}

/// What modelled numbers rest on, by name.
fn assumptions(plan: &Plan) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut say = |k: &str, v: String| {
        out.insert(k.to_string(), v);
    };
    // Summaries are asked of other models, too.
    let models = plan.all_models();
    let weak = models.iter().filter_map(|m| model::find(&m.weak).ok());
    for m in models.iter().copied().chain(weak).chain(plan.options.summary_model) {
        let l = m.latency;
        say(
            &format!("latency of {}", m.name),
            format!(
                "first token = {} + {}·uncached + {}·cached ms, then {} ms per output token \
                 (modelled)",
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
        all => format!(
            "written by {}",
            all.iter().map(Summariser::origin).collect::<Vec<_>>().join(", ")
        ),
    };
    say("summaries", summaries);
    if let Some(told) = plan.options.memory.told() {
        say(yardstick::MEMORY, told);
    }
    say(
        "think time",
        format!("from the session, else {} s before a user message", d.think_ms / 1_000),
    );
    say(
        "tool time",
        format!(
            "from the session, else {} s per step with calls; a re-read takes as long",
            d.tools_ms / 1_000
        ),
    );
    say(
        "refusals",
        "take no time, unless a fault of the scenario says after how long they come; \
        clients try again at once"
            .to_string(),
    );
    let rereads = if plan.options.rereads {
        "once per loss, whole, charged (modelled)"
    } else {
        "switched off"
    };
    say("re-reads", rereads.to_string());
    let calibrate = plan.options.calibrate;
    for m in plan.all_models() {
        let counting = if calibrate == Calibrate::Off { Counting::O200K } else { m.counting };
        say(&yardstick::tokens_of(&m.name), counting.told());
    }
    let edges = if plan.edges {
        "each pair was run there, too; how the order changes stands in a table of its own"
    } else {
        "not run; --edges shows how the order of the strategies changes there. Visible text of a \
         recording with counters has edges of its own, for Claude -5 and +5 %"
    };
    say("edges of the counting model", edges.to_string());
    let calibrated = match calibrate {
        Calibrate::Off => "off: o200k, whatever the model",
        Calibrate::Family => "family: as the model's family counts",
        Calibrate::Recording => {
            "recording: as the model's family counts; where a recording has counters, visible text \
             by itself (Claude: 1.1 · o200k) and what they tell of text that the file lacks apart"
        }
    };
    say(yardstick::CALIBRATION, calibrated.to_string());
    say(yardstick::PRICES, model::price_table().to_string());
    let first = plan.options.seed;
    say(
        "seed",
        if plan.seeds > 1 {
            format!("{first} to {}, each for what is seeded", first + plan.seeds - 1)
        } else {
            first.to_string()
        },
    );
    say("prompt cache", "simulated by the provider's rules".to_string());
    out
}
