//! Replays the recorded path of a session through one strategy and builds the record of the run.

mod agents;
mod background;
pub(crate) mod compactions;
mod conversation;
mod delegation;
mod events;
pub(crate) mod exchange;
mod fact_errors;
mod fact_exposure;
mod fact_losses;
mod fact_scope;
mod fact_timeline;
mod facts;
mod integrity;
mod needs;
mod observer;
mod path;
mod prefix;
mod record;
pub(crate) mod recording;
mod rereads;
mod resume;
mod retention;
mod rewinds;
mod savings;
mod session_cache;
mod subagent_index;
mod subagents;
mod texts;
mod trace;
mod windows;
mod world;

use std::sync::{Arc, OnceLock};

use ctxbench_core::agent;
use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::calibration::Calibrate;
use ctxbench_core::engine::{Engine, Fixed, TimedEvent};
use ctxbench_core::history::History;
use ctxbench_core::model::Model;
use ctxbench_core::request::Tools;
use ctxbench_core::session::{Entry, Millis, Session};
use ctxbench_core::strategy::Standing;
use ctxbench_provider::wire;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::{Scenario, bounds};
use ctxbench_strategies::Spec;

use crate::memory::Prefixes;
use crate::mock::{
    DirectTransport, Door, HttpTransport, ProviderModel, ProviderOptions, SharedDoor, Transport,
};
use crate::rewind::FileRewinds;
use crate::summarise::{Summariser, SummaryDesk};
use crate::watch::{Observations, Watch, Watcher};

use events::{EventLog, ReplayEvent};
use observer::Observer;
use record::{FinishedRun, Stopped};
use recording::{calibrated_model, counted_by, lifetime};
pub(crate) use recording::{counting, text_of};
use session_cache::SessionCache;
use subagents::Subagents;
use world::ReplayWorld;

pub use path::{Move, Path, PathStep, THINK_MS, TOOLS_MS};
pub(crate) use record::{not_run, scenario_info, took_manual};
pub use resume::Loading;
pub(crate) use rewinds::Compared;
pub use savings::with_savings;
pub(crate) use world::{GO_ON, MAX_FAILURES, NEUTRAL};

/// Returns notes on how a session is replayed, for readers of its figures.
pub fn remarks(session: &Session) -> Vec<String> {
    [agents::remarks(session), recording::unfilled(session)].concat()
}

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// Transport to the provider model.
    pub transport: Transport,
    /// Writer of the summaries.
    pub summariser: Summariser,
    /// Random seed.
    pub seed: u64,
    /// Whether the agent fetches lost facts again when it needs them.
    pub rereads: bool,
    /// Whether to write a trace line per request.
    pub trace: bool,
    /// Calibration of token counts.
    pub calibrate: Calibrate,
    /// Context window in tokens, instead of the model's.
    pub window: Option<u64>,
    /// Model of every summary. `None` = the strategy's choice.
    pub summary_model: Option<&'static Model>,
    /// Live monitoring and spend limit, if requested.
    pub watch: Option<Watch>,
    /// Memory files in addition to those of the session.
    pub memory: Arc<Prefixes>,
    /// Fixed context, instead of the session's.
    pub shown: Option<Arc<Fixed>>,
}

impl Default for Options {
    /// Default options: replay in process, with the default summariser.
    fn default() -> Self {
        Options {
            transport: Transport::Direct,
            summariser: Summariser::Extractive,
            seed: 1,
            rereads: true,
            trace: false,
            calibrate: Calibrate::default(),
            window: None,
            summary_model: None,
            watch: None,
            memory: Arc::default(),
            shown: None,
        }
    }
}

/// Record of one replay, with its trace.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Measured figures, except those that need other runs, such as savings.
    pub record: RunRecord,
    /// One JSON line per request.
    pub trace: Vec<String>,
    /// Wall-clock times of loading sessions from disk.
    pub loadings: Vec<Loading>,
    /// Status lines and usage, if the run was monitored.
    pub seen: Observations,
}

/// All results of a replay.
pub struct FullReplay {
    /// Record and trace.
    pub replayed: Replayed,
    /// Events of the engine of the main conversation, including the contexts before and after
    /// compactions.
    pub events: Vec<Arc<TimedEvent>>,
    /// The log of the conversation.
    pub history: History,
}

/// Replays one scenario through one strategy with one model.
pub async fn replay(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
) -> Replayed {
    replay_with(scenario, spec, model, options, &ScenarioCache::from_scenario(scenario)).await
}

/// Like [`replay`], but also returns the events and the log, which can be large.
pub async fn replay_in_full(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
) -> FullReplay {
    let shared = ScenarioCache::from_scenario(scenario);
    let (replayed, engine) = replay_one(scenario, spec, model, options, &shared, true).await;
    let (_, _, events, history) = engine.expect("it was asked for").into_parts();
    FullReplay { replayed, events, history }
}

/// Data that all replays of a scenario share, computed once.
pub(crate) struct ScenarioCache {
    /// The files of the session at its rewinds.
    files: Arc<FileRewinds>,
    /// Analysis of the session, computed at its first use.
    known: OnceLock<Arc<SessionCache>>,
}

impl ScenarioCache {
    pub(crate) fn from_scenario(scenario: &Scenario) -> ScenarioCache {
        let files = Arc::new(FileRewinds::replay(&scenario.session));
        ScenarioCache { files, known: OnceLock::new() }
    }

    /// Returns the data for the same scenario with different texts and the same files.
    pub(crate) fn reworded(&self) -> ScenarioCache {
        ScenarioCache { files: self.files.clone(), known: OnceLock::new() }
    }
}

/// Like [`replay`], but with data that is shared between replays of the scenario.
pub(crate) async fn replay_with(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    shared: &ScenarioCache,
) -> Replayed {
    replay_one(scenario, spec, model, options, shared, false).await.0
}

/// Runs a replay. With `in_full`, also returns the engine of the main conversation with all events.
/// Otherwise the engine keeps no events and is dropped before the record is built, which reduces
/// the peak memory.
async fn replay_one(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    shared: &ScenarioCache,
    in_full: bool,
) -> (Replayed, Option<Engine>) {
    let model = Arc::new(calibrated_model(scenario, model, options));
    let session = &scenario.session;
    let known = shared.known.get_or_init(|| SessionCache::from_session(session).into());
    let desk = SummaryDesk::default();
    let scene = Scene {
        scenario,
        session,
        agent: None,
        spec,
        model: &model,
        options,
        desk: &desk,
        known: known.clone(),
        keeps_events: in_full,
    };
    let provider = SharedDoor::new(open(&scene));
    let watcher = options.watch.as_ref().map(|w| {
        let name = format!(
            "{}/{}/{}/{}/{}",
            scenario.id,
            spec.label(),
            model.name,
            options.summariser.name(),
            options.seed
        );
        Watcher::new(w, name, &model)
    });
    let doors = Doors { provider, watcher: watcher.clone() };
    let (log, events) = EventLog::open();
    let alone = known.subagent_index(session).is_empty();
    let subagents = (!alone).then(|| Subagents::new(&scene, doors.clone(), log.clone()));
    let engine = play(&scene, doors.of(None), subagents.clone(), Start::default(), log).await;
    if let Some(subagents) = &subagents {
        subagents.run_uncalled(engine.now()).await;
    }
    drop(doors);
    let engine = in_full.then_some(engine);
    let seen = watcher.map(|w| w.take()).unwrap_or_default();
    let run = FinishedRun {
        scenario,
        spec,
        model: &model,
        files: &shared.files,
        known,
        summariser: desk.was_asked().then(|| options.summariser.name().into_owned()),
        stopped: Stopped { unsummarised: desk.trouble(), refused: seen.refused.clone() },
    };
    let replayed = record::measured(&run, events);
    (Replayed { seen, ..replayed }, engine)
}

/// Transports from the conversations of a run to their common provider, monitored if requested.
#[derive(Clone)]
struct Doors {
    provider: SharedDoor,
    watcher: Option<Watcher>,
}

impl Doors {
    /// Returns the transport of the main conversation, or of a subagent.
    fn of(&self, agent: Option<&str>) -> Box<dyn Door> {
        let door = Box::new(self.provider.clone());
        match &self.watcher {
            None => door,
            Some(w) => w.door(door, agent),
        }
    }
}

struct Scene<'a> {
    scenario: &'a Scenario,
    /// Messages of the scenario, or of one subagent.
    session: &'a Session,
    /// The subagent; `None` for the main conversation.
    agent: Option<&'a str>,
    spec: &'a Spec,
    model: &'a Arc<Model>,
    options: &'a Options,
    desk: &'a SummaryDesk,
    /// Analysis of the facts of these messages.
    known: Arc<SessionCache>,
    /// Whether the engine keeps its events. Measurements do not need them: they use the log.
    keeps_events: bool,
}

/// Opens the transport to a provider of this scene's model.
fn open(scene: &Scene<'_>) -> Box<dyn Door> {
    let Scene { scenario, spec, model, options, desk, .. } = scene;
    let summariser =
        options.summariser.read_for(&scenario.session, &spec.label(), spec.descriptor.name);
    let unlimited = spec.descriptor.standing == Standing::Hypothetical;
    let provider = ProviderModel::new(ProviderOptions {
        model: (*model).clone(),
        unlimited,
        summariser,
        facts: scenario.session.facts.clone().into(),
        seed: options.seed,
        scale: scenario.scale,
        desk: (*desk).clone(),
    });
    match options.transport {
        Transport::Http => Box::new(HttpTransport::new(provider)),
        Transport::Direct => Box::new(DirectTransport::new(provider)),
    }
}

/// Start of a conversation.
#[derive(Clone, Copy, Default)]
struct Start {
    /// Virtual time in ms.
    at_ms: Millis,
    /// Request of the caller with the reply that started this subagent.
    by_request: Option<u64>,
}

/// Plays one conversation and logs its events.
async fn play(
    scene: &Scene<'_>,
    door: Box<dyn Door>,
    subagents: Option<Arc<Subagents>>,
    start: Start,
    log: EventLog,
) -> Engine {
    let Scene { scenario, session, agent, spec, model, options, known, keeps_events, .. } = scene;
    let waited = subagents.as_ref().map(|s| s.waited_in(*agent)).unwrap_or_default();
    let unseen = known.unseen(session, model, options.calibrate);
    let mut path = Path::without(session, &waited, &unseen);
    recording::give_models(&mut path, scenario, session, model);
    let observer = Observer::new(scene, &path, start, log.clone());
    let world = ReplayWorld::new(scene, path, door, observer, subagents, start.at_ms);
    let mut engine = Engine::new((*model).clone(), Box::new(world));
    engine.fixed = match options.shown.as_deref().filter(|_| agent.is_none()) {
        Some(shown) => shown.clone(),
        None => fixed(session, model, options.calibrate),
    };
    let memory = options.memory.files(spec).iter().map(|(path, text)| memory_block(path, text));
    engine.fixed.context.extend(memory);
    engine.keeps_events = *keeps_events;
    engine.ttl = lifetime(session);
    engine.summary_model = options.summary_model.map(|m| Arc::new(m.clone()));
    let mut strategy = spec.build(scenario.scale, model.window);
    agent::run(&mut engine, &mut *strategy).await;
    log.note(ReplayEvent::Ended { at_ms: engine.now(), usd: engine.ledger.cost_usd() });
    engine
}

/// Returns the context that a session always shows.
fn fixed(session: &Session, model: &Model, calibrate: Calibrate) -> Fixed {
    let mut out = Fixed::default();
    if let Some(n) = session.header.prefix_tokens.filter(|n| *n > 0) {
        // A subagent's size is estimated from its counters and may exceed the limit of a file.
        let n = n.min(bounds::FILLER_TOKENS);
        out.base.push(block(
            BlockKind::Base,
            Role::System,
            text_of(counted_by(session, model, calibrate).fitting(n)),
        ));
    }
    // Entries of a subagent do not belong to the main conversation. In the session of a subagent,
    // its entries are not marked.
    for e in session.entries.iter().filter(|e| e.agent().is_none()) {
        match e {
            Entry::System { text, .. } => {
                out.base.push(block(BlockKind::Base, Role::System, text.clone()))
            }
            Entry::Tools { definitions, .. } => {
                out.tools = Tools::new(&wire::for_model(model).tool_definitions(definitions))
            }
            Entry::Memory { path, text, .. } => out.context.push(memory_block(path, text)),
            Entry::RepoMap { text, .. } => {
                out.repo_map.push(block(BlockKind::RepoMap, Role::User, text.clone()))
            }
            Entry::File { path, text, .. } => {
                out.files.push(block(BlockKind::File, Role::User, format!("{path}\n\n{text}")))
            }
            _ => {}
        }
    }
    out
}

fn block(kind: BlockKind, role: Role, text: String) -> Arc<Block> {
    Draft::text(kind, role, text).build(MessageId(u32::MAX), vec![])
}

/// Returns a memory file as a block, with its path, in the form that strategies expect.
fn memory_block(path: &str, text: &str) -> Arc<Block> {
    block(BlockKind::Context, Role::User, format!("# {path}\n\n{text}"))
}

#[cfg(test)]
mod retention_tests;
