//! Runs strategies × sessions × models in parallel, each pair independently.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use ctxbench_core::model::{self, Counting, Model};
use ctxbench_reports::record::{RESULTS_VERSION, Results, RunRecord, Status, yardstick};
use ctxbench_reports::{Hues, sort_runs};
use ctxbench_scenarios::Scenario;
use ctxbench_session::calibration::Calibrate;
use ctxbench_strategies::descriptor::{Descriptor, PlotColor};
use ctxbench_strategies::{Spec, all};

use crate::options::{Options, Replayed};
use crate::path::{THINK_MS, TOOLS_MS};
use crate::record::not_run;
use crate::replay::{ScenarioCache, replay_with};
use crate::savings::with_savings;
use crate::{models, recorded, twice};
use ctxbench_mock::summarise::Summariser;
use ctxbench_os::block_on;

#[derive(Debug)]
pub struct Plan {
    pub scenarios: Vec<Scenario>,
    pub specs: Vec<Spec>,
    /// Models. Empty means the model of each session, see [`models::own`].
    pub models: Vec<&'static Model>,
    pub options: Options,
    /// Summarisers, instead of the one in the options. A strategy that requests summaries runs with
    /// each, others once.
    pub summarisers: Vec<Summariser>,
    /// Number of seeds, from the one in the options on, for runs that depend on a seed. At least 1.
    pub seeds: u64,
    pub jobs: usize,
    /// Whether a product runs in the version that a recording names, unless its version was chosen.
    pub as_recorded: bool,
    /// Part of the sessions: number from 1, and number of parts.
    pub shard: Option<(usize, usize)>,
}

/// An empty plan: the model of each session, one summariser, one seed, all threads.
impl Default for Plan {
    fn default() -> Plan {
        Plan {
            scenarios: vec![],
            specs: vec![],
            models: vec![],
            options: Options::default(),
            summarisers: vec![Summariser::default()],
            seeds: 1,
            jobs: all_cores(),
            as_recorded: false,
            shard: None,
        }
    }
}

/// Returns the number of threads that use all cores.
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns whether the session with this index belongs to a part of a run.
pub fn is_of_part(part: Option<(usize, usize)>, at: usize) -> bool {
    part.is_none_or(|(i, n)| at % n == i - 1)
}

/// A session with the pairs to run.
pub struct SessionTurn<'a> {
    /// Index in the plan.
    pub at: usize,
    pub scenario: Cow<'a, Scenario>,
    /// Reason why it cannot be run.
    pub broken: Option<String>,
    /// Strategies by index, and models.
    pub pairs: Vec<(usize, &'static Model)>,
}

/// The part of a plan that one row covers.
#[derive(Clone, Copy)]
pub struct Variant<'a> {
    /// Session by index.
    pub at: usize,
    pub spec: &'a Spec,
    pub model: &'static Model,
    pub summariser: &'a Summariser,
    pub seed: u64,
}

/// Receives finished rows on the thread that computed them, and may know some in advance.
pub trait Taker: Sync {
    /// Returns whether the known row of a variant requested summaries. `None` if it must be
    /// computed.
    fn cached(&self, variant: Variant<'_>) -> Option<bool>;
    /// Receives the row of a variant.
    fn take(&self, variant: Variant<'_>, row: Replayed);
}

/// Takes rows without knowing any.
impl<F: Fn(Variant<'_>, Replayed) + Sync> Taker for F {
    fn cached(&self, _: Variant<'_>) -> Option<bool> {
        None
    }

    fn take(&self, variant: Variant<'_>, row: Replayed) {
        self(variant, row);
    }
}

impl Plan {
    /// Returns the rows of the recordings themselves, for sessions with counters.
    pub fn recorded(&self) -> Vec<RunRecord> {
        let sessions = self.scenarios.iter().enumerate().filter(|(at, _)| self.is_here(*at));
        sessions.flat_map(|(_, s)| recorded::rows(s, &self.models)).collect()
    }

    /// Returns whether a session belongs to the part of this run.
    pub fn is_here(&self, at: usize) -> bool {
        is_of_part(self.shard, at)
    }

    /// Returns the number of rows if every strategy requests summaries.
    pub fn pairs(&self) -> usize {
        let each: usize = self.summarisers.iter().map(|s| self.seeds_of(s).count()).sum();
        let here = (0..self.scenarios.len()).filter(|at| self.is_here(*at));
        here.map(|at| self.pairs_of(at).len()).sum::<usize>() * each.max(1)
    }

    /// Returns the pairs of a session: strategies by index, and models.
    pub fn pairs_of(&self, at: usize) -> Vec<(usize, &'static Model)> {
        let models = self.models_of(&self.scenarios[at]);
        let pairs = (0..self.specs.len()).flat_map(|k| models.iter().map(move |m| (k, *m)));
        pairs.collect()
    }

    /// Returns the possible rows of a pair in order. A row without summaries does not depend on
    /// summariser and seed, so it is the only one.
    pub fn variants(
        &self,
        at: usize,
        (k, model): (usize, &'static Model),
    ) -> impl Iterator<Item = Variant<'_>> {
        self.summarisers.iter().flat_map(move |summariser| {
            let spec = &self.specs[k];
            self.seeds_of(summariser).map(move |seed| Variant { at, spec, model, summariser, seed })
        })
    }

    /// Returns whether rows of a summariser have a seed.
    pub fn names_seeds(&self, summariser: &Summariser) -> bool {
        summariser.seeded() && self.seeds > 1
    }

    fn seeds_of(&self, summariser: &Summariser) -> impl Iterator<Item = u64> + use<> {
        let first = self.options.seed;
        first..first.saturating_add(if summariser.seeded() { self.seeds.max(1) } else { 1 })
    }

    fn models_of(&self, scenario: &Scenario) -> Vec<&'static Model> {
        models::for_session(&scenario.session, &self.models)
    }

    /// Returns the models of all sessions, each once.
    pub fn all_models(&self) -> Vec<&'static Model> {
        let mut all: Vec<&'static Model> = Vec::new();
        for model in self.scenarios.iter().flat_map(|s| self.models_of(s)) {
            if all.iter().all(|m| m.name != model.name) {
                all.push(model);
            }
        }
        all
    }

    /// Runs everything and returns the sorted rows. `done` is called for each row on the thread that
    /// computed it. The calling thread takes part, so it must not belong to an asynchronous runtime.
    pub fn run(&self, done: &(dyn Fn(&RunRecord) + Sync)) -> Vec<RunRecord> {
        let mut here: Vec<usize> =
            (0..self.scenarios.len()).filter(|at| self.is_here(*at)).collect();
        // The longest first, so that no thread is left with a long session at the end.
        here.sort_by_key(|at| Reverse(self.scenarios[*at].session.entries.len()));
        let rows = Mutex::new(Vec::new());
        let take = |_: Variant<'_>, one: Replayed| {
            done(&one.record);
            rows.lock().unwrap_or_else(PoisonError::into_inner).push(one.record);
        };
        self.run_each(&take, |give| {
            for at in here {
                let (scenario, pairs) = (Cow::Borrowed(&self.scenarios[at]), self.pairs_of(at));
                give(SessionTurn { at, scenario, broken: None, pairs });
            }
        });
        let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
        sort_runs(&mut rows);
        rows
    }

    /// Runs the sessions that `feed` hands over, on a separate thread. It is at most two sessions
    /// ahead, so memory contains few more sessions than threads. The calling thread takes part, as
    /// for [`Plan::run`].
    pub fn run_each<'a>(
        &'a self,
        taker: &dyn Taker,
        feed: impl FnOnce(&mut dyn FnMut(SessionTurn<'a>)) + Send,
    ) {
        let (to, turns) = sync_channel::<SessionTurn<'a>>(1);
        let queue = Mutex::new((turns, VecDeque::<Pair<'a>>::new()));
        // Rows of one session share work, which two threads at the same row would both do. So a
        // thread stays with a session, then takes a new one, then helps with that of another.
        let next = |mut current: Option<usize>| {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let (turns, pairs) = &mut *queue;
            loop {
                if let Some(own) = pairs.iter().position(|(of, ..)| Some(of.at) == current) {
                    return pairs.remove(own);
                }
                let turn = if pairs.is_empty() { turns.recv().ok() } else { turns.try_recv().ok() };
                let Some(SessionTurn { at, scenario, broken, pairs: own }) = turn else {
                    return pairs.pop_front();
                };
                let of = Arc::new(LoadedSession { at, scenario, broken, shared: OnceLock::new() });
                pairs.extend(own.into_iter().map(|(k, model)| (of.clone(), k, model)));
                current = Some(at);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // The receiver is dropped only after the run.
                feed(&mut |turn| drop(to.send(turn)));
            });
            let work = || {
                let mut current = None;
                while let Some((of, k, model)) = next(current) {
                    self.pair(taker, &of, k, model);
                    current = Some(of.at);
                }
            };
            // The calling thread works, too. Memory that it frees can be used after the run, while
            // an allocator may keep that of other threads.
            for _ in 1..self.jobs.min(self.pairs()) {
                scope.spawn(work);
            }
            work();
        });
    }

    fn pair(&self, taker: &dyn Taker, of: &LoadedSession<'_>, k: usize, model: &'static Model) {
        for variant in self.variants(of.at, (k, model)) {
            let asked = taker.cached(variant).unwrap_or_else(|| {
                let one = self.compute(of, variant);
                let asked = one.record.summariser.is_some();
                taker.take(variant, one);
                asked
            });
            if !asked {
                break;
            }
        }
    }

    fn compute(&self, of: &LoadedSession<'_>, variant: Variant<'_>) -> Replayed {
        let Variant { spec: chosen, model, summariser, seed, .. } = variant;
        let scenario = &*of.scenario;
        let source = scenario.session.header.source.as_ref().filter(|_| self.as_recorded);
        let spec = &chosen.of_release(source.and_then(|source| source.version.as_deref()));
        let begin = Instant::now();
        let run = || -> Result<Replayed, (Status, String)> {
            if let Some(why) = &of.broken {
                return Err((Status::Error, why.clone()));
            }
            if let Some(why) = spec.unfit(model) {
                return Err((Status::NotApplicable, why.to_string()));
            }
            let options = Options { summariser: summariser.clone(), seed, ..self.options.clone() };
            let shared = of.shared();
            let replay = |options: &Options| {
                let run = block_on(replay_with(scenario, spec, model, options, shared, false));
                let failed = |e| (Status::Error, format!("the runtime could not be started: {e}"));
                run.map(|(replayed, _)| replayed).map_err(failed)
            };
            let replayed = if spec.descriptor.product.is_run_twice() {
                let traced = Options { trace: true, ..options.clone() };
                let first = twice::check_repeatable(replay(&traced)?, &replay(&traced)?);
                let trace = if options.trace { first.trace } else { vec![] };
                Replayed { trace, ..first }
            } else {
                replay(&options)?
            };
            let mut record = replayed.record;
            record.strategy.label = chosen.label();
            let named = record.summariser.is_some() && self.names_seeds(summariser);
            let record = RunRecord { seed: named.then_some(seed), ..record };
            Ok(Replayed { record, ..replayed })
        };
        let panicked = "the replay panicked; this is a fault of ctxbench, please report it";
        let ended = catch_unwind(AssertUnwindSafe(run));
        let replayed = ended.unwrap_or_else(|_| Err((Status::Error, panicked.into())));
        let replayed = replayed.unwrap_or_else(|(status, why)| {
            let record = not_run(scenario, chosen, model, status, why);
            Replayed { record, ..Replayed::default() }
        });
        Replayed { took: begin.elapsed(), ..replayed }
    }
}

struct LoadedSession<'a> {
    at: usize,
    scenario: Cow<'a, Scenario>,
    broken: Option<String>,
    shared: OnceLock<ScenarioCache>,
}

impl LoadedSession<'_> {
    fn shared(&self) -> &ScenarioCache {
        self.shared.get_or_init(|| ScenarioCache::from_scenario(&self.scenario))
    }
}

type Pair<'a> = (Arc<LoadedSession<'a>>, usize, &'static Model);

/// Returns the results of finished rows, with savings.
pub fn results(plan: &Plan, mut records: Vec<RunRecord>) -> Results {
    sort_runs(&mut records);
    Results { runs: with_savings(records), ..head(plan) }
}

/// Returns the results of a plan without rows.
pub fn head(plan: &Plan) -> Results {
    Results {
        version: RESULTS_VERSION,
        generator: concat!("ctxbench ", env!("CARGO_PKG_VERSION")).into(),
        assumptions: assumptions(plan),
        runs: Vec::new(),
    }
}

/// Returns the preferred colours of strategies.
pub fn hues() -> Hues {
    let hue = |d: &Descriptor| match d.color {
        PlotColor::Palette(hue) => Some((d.name, hue)),
        PlotColor::Grey => None,
    };
    all().filter_map(hue).collect()
}

/// Returns the assumptions of modelled numbers, by name.
fn assumptions(plan: &Plan) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    // Summaries are asked of other models, too.
    let models = plan.all_models();
    let weak = models.iter().filter_map(|m| model::find(&m.weak).ok());
    for m in models.iter().copied().chain(weak).chain(plan.options.summary_model) {
        let l = m.latency;
        let latency = format!(
            "first token = {} + {}·uncached + {}·cached ms, then {} ms per output token (modelled)",
            l.a_ms, l.b_ms, l.c_ms, l.d_ms
        );
        out.insert(format!("latency of {}", m.name), latency);
        out.insert(format!("prices of {}", m.name), m.source.clone());
    }
    let calibrate = plan.options.calibrate;
    for m in &models {
        let counting = if calibrate == Calibrate::Off { Counting::O200K } else { m.counting };
        out.insert(yardstick::tokens_of(&m.name), counting.describe());
    }
    let summaries = match &plan.summarisers[..] {
        [one @ (Summariser::Extractive | Summariser::Ideal | Summariser::Lossy { .. })] => {
            format!("written by the {} summariser (modelled)", one.name())
        }
        all => format!(
            "written by {}",
            all.iter().map(Summariser::origin).collect::<Vec<_>>().join(", ")
        ),
    };
    let summaries = match plan.options.summary_model {
        Some(m) => format!("{summaries}, priced as {}", m.name),
        None => summaries,
    };
    let rereads = match plan.options.rereads {
        true => "once per loss, whole, charged (modelled)",
        false => "switched off",
    };
    let calibrated = match calibrate {
        Calibrate::Off => "off: o200k, whatever the model",
        Calibrate::Family => "family: as the model's family counts",
        Calibrate::Recording => {
            "recording: as the model's family counts; where a recording has counters, visible text \
             by itself (Claude: 1.1 · o200k) and what they tell of text that the file lacks apart"
        }
    };
    let refusals = "take no time, unless a fault of the scenario says after how long they come; \
        clients try again at once";
    let first = plan.options.seed;
    let seed = match plan.seeds {
        0 | 1 => first.to_string(),
        more => format!("{first} to {}", first + more - 1),
    };
    let (think_s, tools_s) = (THINK_MS / 1_000, TOOLS_MS / 1_000);
    let fixed = [
        ("summaries", summaries),
        ("think time", format!("from the session, else {think_s} s before a user message")),
        (
            "tool time",
            format!(
                "from the session, else {tools_s} s per step with calls; a re-read takes as long"
            ),
        ),
        ("refusals", refusals.to_string()),
        ("re-reads", rereads.to_string()),
        (yardstick::USED, plan.options.used.clone()),
        (yardstick::CALIBRATION, calibrated.to_string()),
        (yardstick::PRICES, model::price_table().to_string()),
        ("seed", seed),
        ("prompt cache", "simulated by the provider's rules".to_string()),
    ];
    let memory = plan.options.memory.summary().map(|told| (yardstick::MEMORY, told));
    out.extend(fixed.into_iter().chain(memory).map(|(name, how)| (name.to_string(), how)));
    out
}
