//! Replays a session: its main conversation, the subagents, and the record of both.

use std::sync::{Arc, OnceLock};

use ctxbench_core::host::TimedEvent;
use ctxbench_core::strategy::Standing;
use ctxbench_core::{Engine, History, Model};
use ctxbench_mock::summarise::SummaryDesk;
use ctxbench_mock::{Door, HttpTransport, ProviderModel, ProviderOptions, Transport};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;
use tokio::sync::Mutex;

use crate::conversation::SharedConversation;
use crate::options::{Options, Replayed};
use crate::play::play;
use crate::record;
use crate::recording::{calibrated_model, counting};
use crate::rewind::FileRewinds;
use crate::scene::{FinishedRun, Scene, Start};
use crate::session_cache::SessionCache;
use crate::subagent_index::SubagentIndex;
use crate::subagents::Subagents;
use crate::watch::{RunDoor, Watcher};

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
    let shared = ScenarioCache::from_scenario(scenario);
    replay_with(scenario, spec, model, options, &shared, false).await.0
}

/// Like [`replay`], but also returns the events and the log, which can be large.
pub async fn replay_in_full(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
) -> FullReplay {
    let shared = ScenarioCache::from_scenario(scenario);
    let (replayed, engine) = replay_with(scenario, spec, model, options, &shared, true).await;
    let engine = engine.expect("it was asked for");
    FullReplay { replayed, events: engine.events().to_vec(), history: engine.history }
}

/// Data that all replays of a scenario share, computed once.
pub(crate) struct ScenarioCache {
    files: FileRewinds,
    /// Analysis of the session, computed at its first use.
    known: OnceLock<(Arc<SessionCache>, Arc<SubagentIndex>)>,
}

impl ScenarioCache {
    pub(crate) fn from_scenario(scenario: &Scenario) -> ScenarioCache {
        let files = FileRewinds::replay(&scenario.session);
        ScenarioCache { files, known: OnceLock::new() }
    }
}

/// Like [`replay`], but with data that is shared between replays of the scenario. With `in_full`,
/// also returns the engine of the main conversation with all events.
/// Otherwise the engine keeps no events and is dropped before the record is built, which reduces
/// the peak memory.
pub(crate) async fn replay_with(
    scenario: &Scenario,
    spec: &Spec,
    model: &Model,
    options: &Options,
    shared: &ScenarioCache,
    in_full: bool,
) -> (Replayed, Option<Engine>) {
    let session = &scenario.session;
    let (known, index) = shared.known.get_or_init(|| {
        let known = SessionCache::from_session(session);
        let index = SubagentIndex::from_session(session, &known);
        (known.into(), index.into())
    });
    let counting = counting(session, model, options.calibrate);
    let model = Arc::new(calibrated_model(scenario, spec, model, options, counting));
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
    let provider = Arc::new(Mutex::new(open(&scene)));
    let watcher = options.watch.as_ref().map(Watcher::new);
    let door = RunDoor { provider, watcher: watcher.clone(), agent: None };
    let log = SharedConversation::default();
    let subagents =
        (!index.all.is_empty()).then(|| Subagents::new(&scene, index.clone(), door.clone()));
    let agents = subagents.as_ref().map(|s| s.of_window(None)).unwrap_or_default();
    let engine = play(&scene, door, agents, Start::default(), log.clone()).await;
    let mut agents = Vec::new();
    if let Some(subagents) = &subagents {
        subagents.run_uncalled(engine.now()).await;
        agents = subagents.take();
    }
    let engine = in_full.then_some(engine);
    let seen = watcher.map(|w| w.take()).unwrap_or_default();
    let run = FinishedRun {
        scene: &scene,
        files: &shared.files,
        subagents: index,
        refused: seen.refused.clone(),
    };
    let mut main = log.take();
    let contexts = main.contexts.take().unwrap_or_default();
    let replayed = record::measured(&run, main, agents);
    (Replayed { seen, contexts, ..replayed }, engine)
}

/// Opens the transport to a provider of this scene's model.
fn open(scene: &Scene<'_>) -> Box<dyn Door> {
    let Scene { scenario, spec, model, options, desk, .. } = scene;
    let summariser = options.summariser.read_for(&scenario.session);
    let unlimited = spec.descriptor.standing == Standing::Hypothetical;
    let provider = ProviderModel::new(ProviderOptions {
        model: (*model).clone(),
        unlimited,
        summariser,
        facts: scenario.session.facts.clone().into(),
        seed: options.seed,
        scale: scenario.scale,
        desk: (*desk).clone(),
        live: None,
    });
    match options.transport {
        Transport::Http => Box::new(HttpTransport::new(provider)),
        Transport::Direct => Box::new(provider),
    }
}
