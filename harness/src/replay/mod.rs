//! Replay: a session's recorded path through one strategy, and the record of what was measured.

mod altered;
mod decoys;
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
use ctxbench_core::session::{Entry, Session};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use crate::mock::{DirectDoor, Door, HttpDoor, ProviderModel, ProviderOptions, Transport};
use crate::summarise::{Script, Summariser, SummaryDesk};

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
    let (tally, engine) = play(scenario, spec, &model, options, &desk).await;
    let total_ms = engine.now();
    let background = engine.races.records();
    let (_, ledger, events, history) = engine.into_parts();
    let course = measure::Course { events: &events, ledger: &ledger, background, total_ms };
    let mut replayed = measure::record(scenario, spec, &model, &tally, course);
    let after = tally.lock().map(|t| t.resumes.clone()).unwrap_or_default();
    (replayed.record.resume, replayed.loadings) = resume::records(&scenario.session, spec, &events, &after);
    replayed.record.summariser = desk.asked().then(|| options.summariser.name().into_owned());
    if let Some(why) = desk.trouble() {
        replayed.record.status = Status::Error;
        replayed.record.error = Some(format!("{}: {why}", spec.label()));
    }
    Whole { replayed, events, history }
}

async fn play(
    scenario: &Scenario,
    spec: &Spec,
    model: &Arc<Model>,
    options: &Options,
    desk: &SummaryDesk,
) -> (Arc<Mutex<tally::Tally>>, Engine) {
    let summariser = match &options.summariser {
        Summariser::Scripted(s) => Summariser::Scripted(Script::Texts(s.texts(&scenario.session, &spec.label(), spec.descriptor.name))),
        other => other.clone(),
    };
    let unlimited = spec.descriptor.standing == Standing::Hypothetical;
    let provider = ProviderModel::new(ProviderOptions {
        model: model.clone(),
        unlimited,
        summariser,
        facts: scenario.session.facts.clone().into(),
        seed: options.seed,
        scale: scenario.scale,
        desk: desk.clone(),
    });
    let door: Box<dyn Door> = match options.transport {
        Transport::Http => Box::new(HttpDoor::start(provider, model.capabilities.counting).await),
        Transport::Direct => Box::new(DirectDoor::new(provider, model.capabilities.counting)),
    };
    let path = Path::of(&scenario.session, &Defaults::STATED);
    let mut tally = tally::Tally::new(&scenario.session, &path, model, spec.descriptor.recovery, options);
    tally.set_label(&scenario.id, &spec.label());
    let tally = Arc::new(Mutex::new(tally));
    let world = world::ReplayWorld::new(path, door, tally.clone(), options.rereads, scenario.faults.clone(), desk.clone());
    let mut engine = Engine::new(model.clone(), Box::new(world));
    engine.fixed = fixed(&scenario.session, model);
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
        out.base.push(block(BlockKind::Base, Role::System, text_of(n)));
    }
    for e in &session.entries {
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
