//! Replay: a session's recorded path through one strategy, and the record of what was measured.

mod agents;
mod altered;
mod crew;
mod decoys;
mod delegation;
mod drift;
mod facts;
mod integrity;
mod lives;
mod measure;
mod needs;
mod path;
mod recovery;
mod rereads;
mod resume;
mod retention;
mod rewinds;
mod said;
mod tally;
mod trace;
mod world;

use std::sync::{Arc, Mutex};

use ctxbench_core::agent;
use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::descriptor::Standing;
use ctxbench_core::engine::{Engine, Fixed, Stamped};
use ctxbench_core::history::History;
use ctxbench_core::provider::{Model, tool_definitions};
use ctxbench_core::record::{RunRecord, Status};
use ctxbench_core::request::Tools;
use ctxbench_core::session::{Entry, Millis, Session};
use ctxbench_scenarios::{Scenario, bounds};
use ctxbench_strategies::Spec;

use crate::mock::{DirectDoor, Door, HttpDoor, ProviderModel, ProviderOptions, SharedDoor, Transport};
use crate::summarise::{Script, Summariser, SummaryDesk};
use crate::watch::{Seen, Watch, Watcher};

pub use agents::remarks;
use crew::Crew;
pub use measure::fill_savings;
pub use path::{Defaults, Path};
pub use resume::Loading;

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
    /// Context window instead of the model's, tokens.
    pub window: Option<u64>,
    /// Model of every summary, instead of each strategy's own rule.
    pub summary_model: Option<&'static Model>,
    /// What is watched beside it, and what stops it; `None` = nothing.
    pub watch: Option<Watch>,
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
            window: None,
            summary_model: None,
            watch: None,
        }
    }
}

/// The record of one pair, with its trace.
#[derive(Debug)]
pub struct Replayed {
    /// What was measured. Savings against the reference are filled in later.
    pub record: RunRecord,
    /// One JSON line per request.
    pub trace: Vec<String>,
    /// How long sessions took to load from disk, wall clock.
    pub loadings: Vec<Loading>,
    /// What was seen by who watched; empty if nobody did.
    pub seen: Seen,
}

/// Everything that a replay leaves behind.
pub struct Whole {
    /// What was measured.
    pub replayed: Replayed,
    /// What happened besides requests, contexts before and after compactions among it.
    pub events: Vec<Stamped>,
    /// The log of the conversation.
    pub history: History,
}

/// Replays one scenario through one strategy with one model.
pub async fn replay(scenario: &Scenario, spec: &Spec, model: &Model, options: &Options) -> Replayed {
    replay_whole(scenario, spec, model, options).await.replayed
}

/// The same, with the events and the log, which can be large.
pub async fn replay_whole(scenario: &Scenario, spec: &Spec, model: &Model, options: &Options) -> Whole {
    let model = Arc::new(limits(scenario, model, options.window));
    let desk = SummaryDesk::default();
    let scene = Scene { scenario, session: &scenario.session, agent: None, spec, model: &model, options, desk: &desk };
    let provider = SharedDoor::new(open(&scene).await);
    let watcher = options.watch.as_ref().map(|w| {
        let name = format!("{}/{}/{}/{}/{}", scenario.id, spec.label(), model.name, options.summariser.name(), options.seed);
        Watcher::new(w, name, &model, scenario.scale)
    });
    let doors = Doors { provider, watcher: watcher.clone() };
    let agents = agents::of(&scenario.session);
    let crew = (!agents.is_empty()).then(|| Crew::new(&scene, doors.clone(), agents));
    let (tally, engine) = play(&scene, doors.of(None), crew.clone(), 0).await;
    let total_ms = engine.now();
    if let Some(crew) = &crew {
        crew.rest(total_ms).await;
    }
    let background = engine.races.records();
    let (_, ledger, events, history) = engine.into_parts();
    let course = measure::Course { events: &events, ledger: &ledger, background, total_ms };
    let mut replayed = measure::record(scenario, spec, &model, &tally, course);
    let after = tally.lock().map(|t| t.resumes.clone()).unwrap_or_default();
    (replayed.record.resume, replayed.loadings) = resume::records(&scenario.session, spec, &events, &after);
    if let Some(crew) = &crew {
        delegation::add(&mut replayed, crew, &scenario.session);
    }
    replayed.record.summariser = desk.asked().then(|| options.summariser.name().into_owned());
    if let Some(why) = desk.trouble() {
        replayed.record.status = Status::Error;
        replayed.record.error = Some(format!("{}: {why}", spec.label()));
    }
    if let Some(w) = watcher {
        replayed.seen = w.take();
        if let (Some(why), true) = (&replayed.seen.refused, replayed.record.status != Status::Completed) {
            replayed.record.status = Status::Failed;
            replayed.record.error = Some(why.clone());
        }
    }
    Whole { replayed, events, history }
}

/// The ways of a run's conversations to the one provider that they share, watched if anybody watches.
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
}

/// The door to a provider of this scene's model.
async fn open(scene: &Scene<'_>) -> Box<dyn Door> {
    let Scene { scenario, spec, model, options, desk, .. } = scene;
    let summariser = match &options.summariser {
        Summariser::Scripted(s) => Summariser::Scripted(Script::Texts(s.texts(&scenario.session, &spec.label(), spec.descriptor.name))),
        other => other.clone(),
    };
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
        Transport::Http => Box::new(HttpDoor::start(provider, model.capabilities.counting).await),
        Transport::Direct => Box::new(DirectDoor::new(provider, model.capabilities.counting)),
    }
}

/// Plays one conversation from a virtual time on. The faults of a scenario are the main conversation's.
async fn play(scene: &Scene<'_>, door: Box<dyn Door>, crew: Option<Arc<Crew>>, from: Millis) -> (Arc<Mutex<tally::Tally>>, Engine) {
    let Scene { scenario, session, agent, spec, model, options, desk } = scene;
    let waited = crew.iter().flat_map(|c| c.agents.iter()).filter(|a| a.waits);
    let waited = waited.filter_map(|a| a.call.as_ref()).map(|c| c.id.as_str()).collect();
    let path = Path::without(session, &Defaults::STATED, &waited);
    let mut tally = tally::Tally::new(session, &path, model, spec.descriptor.recovery, options);
    tally.set_label(&scenario.id, &spec.label(), *agent);
    let tally = Arc::new(Mutex::new(tally));
    let faults = if agent.is_none() { scenario.faults.clone() } else { vec![] };
    let mut world = world::ReplayWorld::new(path, door, tally.clone(), options.rereads, faults, (*desk).clone());
    world.enter(crew, from);
    let mut engine = Engine::new((*model).clone(), Box::new(world));
    engine.fixed = fixed(session, model);
    engine.summary_model = options.summary_model.map(|m| m.name.clone());
    let mut strategy = spec.build(scenario.scale);
    agent::run(&mut engine, &mut *strategy).await;
    (tally, engine)
}

/// The model as this session meets it: limits of the session or the command line, then the scale.
fn limits(scenario: &Scenario, model: &Model, window: Option<u64>) -> Model {
    let header = &scenario.session.header;
    let mut m = model.clone();
    if let Some(w) = window.or(header.context_window) {
        m.window = w;
        m.input_limit = None;
    }
    if let Some(o) = header.max_output {
        m.max_output = o;
    }
    m.scaled(scenario.scale)
}

/// What a session always shows.
fn fixed(session: &Session, model: &Model) -> Fixed {
    let mut out = Fixed::default();
    let block = |kind, role, text: String| -> Arc<Block> { Draft::text(kind, role, text).build(MessageId(u32::MAX), vec![]) };
    if let Some(n) = session.header.prefix_tokens.filter(|n| *n > 0) {
        // A subagent's is reckoned from its counters and may be larger than what a file may say.
        out.base.push(block(BlockKind::Base, Role::System, text_of(n.min(bounds::FILLER_TOKENS))));
    }
    // What is marked as a subagent's is not the main conversation's; in the session of a subagent nothing is marked.
    for e in session.entries.iter().filter(|e| agents::window(e).is_none()) {
        match e {
            Entry::System { text, .. } => out.base.push(block(BlockKind::Base, Role::System, text.clone())),
            Entry::Tools { definitions, .. } => out.tools = Tools::new(&tool_definitions(model.wire, definitions)),
            Entry::Memory { path, text, .. } => out.context.push(block(BlockKind::Context, Role::User, format!("# {path}\n\n{text}"))),
            Entry::RepoMap { text, .. } => out.repo_map.push(block(BlockKind::RepoMap, Role::User, text.clone())),
            Entry::File { path, text, .. } => out.files.push(block(BlockKind::File, Role::User, format!("{path}\n\n{text}"))),
            _ => {}
        }
    }
    out
}

/// Text of exactly `tokens` tokens that stands for words that were not recorded.
fn text_of(tokens: u64) -> String {
    let mut out = String::from(if tokens == 0 { "" } else { "x" });
    for _ in 1..tokens {
        out.push_str(" x");
    }
    out
}

#[cfg(test)]
mod retention_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_text_of_has_its_size() {
        for n in [0, 1, 2, 500, 27_699] {
            assert_eq!(ctxbench_core::tokens::o200k(&text_of(n)), n);
        }
    }
}
