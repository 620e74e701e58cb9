//! Replay: a session's recorded path through one strategy, and the record of what was measured.

mod agents;
mod altered;
mod background;
pub(crate) mod compactions;
mod conversation;
mod crew;
mod delegation;
mod drift;
mod events;
pub(crate) mod exchange;
mod facts;
mod grown;
mod histories;
mod integrity;
mod known;
mod needs;
mod observer;
mod own_facts;
mod path;
mod prefix;
mod record;
pub(crate) mod recording;
mod rereads;
mod resume;
mod retention;
mod rewinds;
mod savings;
mod showings;
mod subagents;
mod texts;
mod trace;
mod windows;
mod world;

use std::sync::Arc;

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

use events::{Event, Log};
use known::{Known, KnownSession};
use observer::Observer;
use record::{Run, Stopped};
use recording::{counted_by, lifetime, met};
pub(crate) use recording::{counting, text_of};
use subagents::Subagents;
use trace::Tracer;

pub use path::{Defaults, Move, Path, Step};
pub(crate) use record::{not_run, scenario_info, took_manual};
pub use resume::Loading;
pub(crate) use rewinds::Compared;
pub use savings::with_savings;
pub(crate) use world::{GO_ON, MOST_FAILURES, NEUTRAL};

/// What a reader of a session's figures should know of how it is replayed.
pub fn remarks(session: &Session) -> Vec<String> {
    [agents::remarks(session), recording::unfilled(session)].concat()
}

/// How sessions are replayed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which door to the provider model.
    pub transport: Transport,
    /// Who writes summaries.
    pub summariser: Summariser,
    /// Seed of everything seeded.
    pub seed: u64,
    /// Model the agent fetching again what it lost and needs.
    pub rereads: bool,
    /// Keep a trace line per request.
    pub trace: bool,
    /// How tokens are counted.
    pub calibrate: Calibrate,
    /// Context window instead of the model's, tokens.
    pub window: Option<u64>,
    /// Model of every summary, instead of each strategy's own rule.
    pub summary_model: Option<&'static Model>,
    /// What is watched beside it, and what stops it; `None` = nothing.
    pub watch: Option<Watch>,
    /// Memory files beside those of the session.
    pub memory: Arc<Prefixes>,
    /// What is always shown, instead of what the session says.
    pub shown: Option<Arc<Fixed>>,
}

impl Default for Options {
    /// In process, with the default summariser.
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

/// The record of one pair, with its trace.
#[derive(Debug)]
pub struct Replayed {
    /// What was measured; nothing that takes other runs, such as savings.
    pub record: RunRecord,
    /// One JSON line per request.
    pub trace: Vec<String>,
    /// How long sessions took to load from disk, wall clock.
    pub loadings: Vec<Loading>,
    /// Status lines and usage, if the run was monitored.
    pub seen: Observations,
}

/// Everything that a replay leaves behind.
pub struct FullReplay {
    /// What was measured.
    pub replayed: Replayed,
    /// What the engine of the main conversation noted, contexts before and after compactions among
    /// it.
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
    replay_with(scenario, spec, model, options, &Shared::of(scenario)).await
}

/// The same, with the events and the log, which can be large.
pub async fn replay_in_full(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
) -> FullReplay {
    let shared = Shared::of(scenario);
    let (replayed, engine) = replay_one(scenario, spec, model, options, &shared, true).await;
    let (_, _, events, history) = engine.expect("it was asked for").into_parts();
    FullReplay { replayed, events, history }
}

/// What is the same whatever a scenario is replayed with: found out once.
pub(crate) struct Shared {
    /// The files of the session at its rewinds.
    files: Arc<FileRewinds>,
    known: KnownSession,
}

impl Shared {
    pub(crate) fn of(scenario: &Scenario) -> Shared {
        let files = Arc::new(FileRewinds::replay(&scenario.session));
        Shared { files, known: KnownSession::default() }
    }

    /// For the scenario where other words are said of the same files.
    pub(crate) fn reworded(&self) -> Shared {
        Shared { files: self.files.clone(), known: KnownSession::default() }
    }
}

/// The same as [`replay`], with what other replays of the scenario found out.
pub(crate) async fn replay_with(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    shared: &Shared,
) -> Replayed {
    replay_one(scenario, spec, model, options, shared, false).await.0
}

/// A replay, and `in_full` the engine of its main conversation with all events. Otherwise it keeps
/// none of them, and is gone before the record is built: both together would be the most that a run
/// holds.
async fn replay_one(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    shared: &Shared,
    in_full: bool,
) -> (Replayed, Option<Engine>) {
    let model = Arc::new(met(scenario, model, options));
    let desk = SummaryDesk::default();
    let scene = Scene {
        scenario,
        session: &scenario.session,
        agent: None,
        spec,
        model: &model,
        options,
        desk: &desk,
        known: shared.known.of(&scenario.session),
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
    let (log, events) = Log::open();
    let known = scene.known.clone();
    let alone = known.crew(&scenario.session).is_empty();
    let subagents = (!alone).then(|| Subagents::new(&scene, doors.clone(), log.clone()));
    let engine = play(&scene, doors.of(None), subagents.clone(), Start::default(), log).await;
    if let Some(subagents) = &subagents {
        subagents.run_uncalled(engine.now()).await;
    }
    drop(doors);
    let engine = in_full.then_some(engine);
    let seen = watcher.map(|w| w.take()).unwrap_or_default();
    let run = Run {
        scenario,
        spec,
        model: &model,
        files: &shared.files,
        known: &known,
        summariser: desk.asked().then(|| options.summariser.name().into_owned()),
        stopped: Stopped { unsummarised: desk.trouble(), refused: seen.refused.clone() },
    };
    let measured = record::measured(&run, events);
    let record::Measured { record, trace, loadings } = measured;
    (Replayed { record, trace, loadings, seen }, engine)
}

/// The ways of a run's conversations to the one provider that they share, watched if anybody
/// watches.
#[derive(Clone)]
struct Doors {
    provider: SharedDoor,
    watcher: Option<Watcher>,
}

impl Doors {
    /// That of the main conversation, or of a subagent.
    fn of(&self, agent: Option<&str>) -> Box<dyn Door> {
        let door = Box::new(self.provider.clone());
        match &self.watcher {
            None => door,
            Some(w) => w.door(door, agent),
        }
    }
}

/// One conversation and what it is replayed with.
struct Scene<'a> {
    scenario: &'a Scenario,
    /// Its messages: the scenario's, or those of one subagent.
    session: &'a Session,
    /// The subagent; `None` = the main conversation.
    agent: Option<&'a str>,
    spec: &'a Spec,
    model: &'a Arc<Model>,
    options: &'a Options,
    desk: &'a SummaryDesk,
    /// Of its messages.
    known: Arc<Known>,
    /// The engine keeps what happens; the log has all that is measured.
    keeps_events: bool,
}

/// The door to a provider of this scene's model.
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
        Transport::Http => Box::new(HttpTransport::new(provider, model.capabilities.counting)),
        Transport::Direct => Box::new(DirectTransport::new(provider, model.capabilities.counting)),
    }
}

/// Where a conversation begins.
#[derive(Clone, Copy, Default)]
struct Start {
    /// In virtual time.
    at_ms: Millis,
    /// By the reply to which request of its caller a subagent was started.
    by_request: Option<u64>,
}

/// Plays one conversation; what happens in it goes into the log. The faults of a scenario are the
/// main conversation's.
async fn play(
    scene: &Scene<'_>,
    door: Box<dyn Door>,
    subagents: Option<Arc<Subagents>>,
    start: Start,
    log: Log,
) -> Engine {
    let Scene { scenario, session, agent, spec, model, options, desk, known, keeps_events } = scene;
    let waited = subagents.as_ref().map(|s| s.waited_in(*agent)).unwrap_or_default();
    let unseen = known.unseen(session, model, options.calibrate);
    let path = Path::without(session, &Defaults::STATED, &waited, &unseen);
    let tracer = options.trace.then(|| Tracer::new(&scenario.id, &spec.label()));
    let observer = Observer::new(session, known.clone(), &path, model, log.clone())
        .of_agent(*agent)
        .traced(tracer);
    observer.begun(&path, start.at_ms, start.by_request);
    let faults = if agent.is_none() { scenario.faults.clone() } else { vec![] };
    let world =
        world::ReplayWorld::new(path, door, observer, options.rereads, faults, (*desk).clone());
    let world = world.entered(subagents, start.at_ms).called(&session.header.id);
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
    log.note(Event::Ended { at_ms: engine.now(), usd: engine.ledger.cost_usd() });
    engine
}

/// What a session always shows.
fn fixed(session: &Session, model: &Model, calibrate: Calibrate) -> Fixed {
    let mut out = Fixed::default();
    if let Some(n) = session.header.prefix_tokens.filter(|n| *n > 0) {
        // A subagent's is reckoned from its counters and may be larger than what a file may say.
        let n = n.min(bounds::FILLER_TOKENS);
        out.base.push(block(
            BlockKind::Base,
            Role::System,
            text_of(counted_by(session, model, calibrate).fitting(n)),
        ));
    }
    // What is marked as a subagent's is not the main conversation's; in the session of a subagent
    // nothing is marked.
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

/// A memory file under its path, as strategies know one.
fn memory_block(path: &str, text: &str) -> Arc<Block> {
    block(BlockKind::Context, Role::User, format!("# {path}\n\n{text}"))
}

#[cfg(test)]
mod retention_tests;
