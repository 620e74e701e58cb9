//! Plays one conversation.

use std::collections::{BTreeMap, HashMap, HashSet};

use ctxbench_core::engine::{EngineOptions, Fixed};
use ctxbench_core::prelude::*;
use ctxbench_core::request::Tools;
use ctxbench_core::{Model, agent, model};
use ctxbench_provider::wire;
use ctxbench_scenarios::{Scenario, bounds};
use ctxbench_session::calibration::Calibrate;
use ctxbench_session::{Entry, Session, Surcharge};

use crate::conversation::SharedConversation;
use crate::observer::Observer;
use crate::path::Path;
use crate::recording::{counted_by, is_calibrated, lifetime, text_of, unseen};
use crate::scene::{Scene, Start};
use crate::watch::RunDoor;
use crate::world::{ReplayWorld, RunAgents};

/// Plays one conversation and measures it. `waited` = its calls that wait for subagents.
pub(crate) async fn play(
    scene: &Scene<'_>,
    door: RunDoor,
    (waited, subagents): (HashSet<&str>, Option<RunAgents>),
    start: Start,
    log: SharedConversation,
) -> Engine {
    let Scene { scenario, session, agent, spec, model, options, keeps_events, .. } = scene;
    let unseen = unseen(session, model, options.calibrate);
    let mut path = Path::without(session, &waited, &unseen);
    if !is_calibrated(session, model, options.calibrate) {
        path.moves.iter_mut().flat_map(|m| &mut m.steps).for_each(|step| step.output = 0);
    }
    give_models(&mut path, scenario, session, model);
    let observer = Observer::new(scene, &path, start, log.clone());
    let world = ReplayWorld::new(scene, path, door, observer, subagents, start.at_ms);
    let settings = EngineOptions {
        keeps_events: *keeps_events,
        ttl: lifetime(session),
        summary_model: options.summary_model.map(|m| Arc::new(m.clone())),
        ..EngineOptions::default()
    };
    let mut engine = Engine::with_options((*model).clone(), Box::new(world), settings);
    engine.fixed = match options.shown.as_deref().filter(|_| agent.is_none()) {
        Some(shown) => shown.clone(),
        None => fixed(session, model, options.calibrate),
    };
    let memory = options.memory.files(spec).iter().map(|(path, text)| memory_block(path, text));
    engine.fixed.context.extend(memory);
    let mut strategy = spec.build(scenario.scale, model.window);
    agent::run(&mut engine, &mut *strategy).await;
    log.lock().end(engine.now(), engine.ledger().cost_usd());
    engine
}

/// Gives each step of a recording the model of its reply, with the price of its terms, if the run's
/// model is the recorded one. Limits and token counting stay those of the run.
fn give_models(path: &mut Path, scenario: &Scenario, own: &Session, run: &Arc<Model>) {
    let listed_as = |name: Option<&str>| name.and_then(model::priced_as);
    let recorded = [&scenario.session, own].map(|s| listed_as(s.header.model.as_deref()));
    if !recorded.iter().any(|m| m.is_some_and(|m| m.name == run.name)) {
        return;
    }
    let mut known: BTreeMap<(Arc<str>, String), Arc<Model>> = BTreeMap::new();
    let models: HashMap<&str, Arc<Model>> = own
        .entries
        .iter()
        .filter_map(|e| match e {
            Entry::Assistant(a) if a.agent.is_none() => {
                let listed = listed_as(a.model.as_deref()).filter(|m| m.provider == run.provider);
                let listed = listed.map_or(&**run, |m| m);
                let terms = a.usage.as_ref().map(|u| Surcharge::new(listed, u).factor);
                let factor = terms.unwrap_or(1.0);
                if listed.name == run.name && factor == 1.0 {
                    return None;
                }
                let model =
                    known.entry((listed.name.clone(), factor.to_string())).or_insert_with(|| {
                        let prices = listed.prices.clone().times(factor);
                        let (name, cache) = (listed.name.clone(), listed.cache);
                        Arc::new(Model { name, cache, prices, ..(**run).clone() })
                    });
                Some((a.id.as_str(), model.clone()))
            }
            _ => None,
        })
        .collect();
    for step in path.moves.iter_mut().flat_map(|m| &mut m.steps) {
        step.model = models.get(&*step.key).cloned();
    }
}

/// Returns the context that a session always shows.
fn fixed(session: &Session, model: &Model, calibrate: Calibrate) -> Fixed {
    let mut out = Fixed::default();
    if let Some(n) = session.header.prefix_tokens.filter(|n| *n > 0) {
        // A subagent's size is estimated from its counters and may exceed the limit of a file.
        let n = counted_by(session, model, calibrate).fitting(n).min(bounds::FILLER_TOKENS);
        out.base.push(block(BlockKind::Base, Role::System, text_of(n)));
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
