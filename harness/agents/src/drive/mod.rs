//! Drives real agents: an installed, unmodified agent runs through a session on loopback, and its
//! requests are measured like those of every other row.
//!
//! `agent` is the description of the agent, `version` the version of its program, and `plan` the
//! session translated for it. A `scratch` folder is its home, `deliver` sends it the user's
//! messages, and `director` answers as its model and records its requests. A `proxy` may be between
//! them. `observed_session`
//! builds the session that the agent saw. Our implementation runs on this session for comparison.
//! `replay_strategy` builds the row from the recorded requests, and `outcome` compares the two.

pub mod agent;
mod check;
mod child;
mod deliver;
mod director;
mod faults;
mod observed_session;
mod outcome;
mod plan;
mod proxy;
pub mod record;
mod replay_strategy;
mod scratch;
mod template;
mod version;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctxbench_core::{Model, Part, Reply, model};
use ctxbench_provider::Prompt;
use ctxbench_scenarios::{ProviderFault, Scenario};
use ctxbench_session::Session;
use ctxbench_strategies::Spec;
use serde::Serialize;

use crate::serve::{ServeOptions, Server};
use agent::{Agent, DriveError, Purpose};
use child::{Patience, Stopped};
use ctxbench_mock::summarise::Summariser;
use ctxbench_os::{block_on, shutdown};
use ctxbench_replay::{GO_ON, MAX_FAILURES};
use deliver::Channel;
use director::{Exchange, SharedDirector};
use faults::FaultKind;
use plan::{Delivery, DrivePlan};
use proxy::RunningProxy;
use scratch::Scratch;
use template::Template;

pub use faults::DriveFault;
pub use outcome::{DriveOutcome, Repeat, failed, measured};
pub use proxy::Proxy;

#[derive(Clone, Debug)]
pub struct DriveOptions {
    pub model: &'static Model,
    /// Context window instead of the model's, tokens.
    pub window: Option<u64>,
    /// Largest reply instead of the model's, tokens.
    pub max_output: Option<u64>,
    /// Summariser that writes the summaries.
    pub summariser: Summariser,
    /// Faults in addition to those of the scenario.
    pub faults: Vec<DriveFault>,
    /// True if the scratch folder is kept.
    pub keep: bool,
    /// Time in which the agent must print something or send a request.
    pub timeout: Duration,
    /// Path of the program, instead of the one in PATH.
    pub program: Option<PathBuf>,
    /// Program between the agent and its model.
    pub proxy: Option<Proxy>,
}

#[derive(Debug)]
pub struct Driven {
    pub agent: Agent,
    /// Version printed by its program, or the reason why it is unknown.
    pub version: Result<String, String>,
    /// Strategy that implements the agent.
    pub strategy: Option<Spec>,
    pub model: &'static Model,
    /// Scratch folder, if it was kept.
    pub kept: Option<PathBuf>,
    /// Context window in its settings, tokens.
    pub window: u64,
    summariser: Summariser,
    /// Session that was delivered.
    session: Session,
    /// Number of the user's messages that were left out, because the agent takes fewer.
    skipped: usize,
    faults: Vec<ProviderFault>,
    /// Notes about faults that did not occur.
    unused_faults: Vec<String>,
    /// Data from its files that recorded cases need.
    notes: ctxbench_conform::record::ProgramNotes,
    plan: Arc<DrivePlan>,
    max_output: u64,
    exchanges: Vec<Exchange>,
    end: DriveEnd,
}

/// Side requests with one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aside {
    pub purpose: Purpose,
    pub requests: usize,
    /// Sum of prompt tokens.
    pub input_tokens: u64,
    /// Cost of the requests, USD.
    #[serde(rename = "cost_usd")]
    pub usd: f64,
}

impl Driven {
    /// Returns the side requests, such as titles, by purpose.
    pub fn asides(&self) -> Vec<Aside> {
        let mut all = BTreeMap::<Purpose, Aside>::new();
        for e in self.exchanges.iter().filter(|e| !e.is_own()) {
            let none = Aside { purpose: e.purpose, requests: 0, input_tokens: 0, usd: 0.0 };
            let aside = all.entry(e.purpose).or_insert(none);
            aside.requests += 1;
            aside.input_tokens += e.input();
            aside.usd += self.usd(e);
        }
        all.into_values().collect()
    }

    /// Returns the HTTP status of every request that was refused or aborted.
    pub fn refused(&self) -> Vec<u16> {
        self.exchanges.iter().filter(|e| e.outcome.is_err()).map(|e| e.http).collect()
    }

    /// Returns whether there is something to measure: a reply, or a refusal by a fault or because
    /// the prompt was too large.
    fn has_asked(&self) -> bool {
        self.shots().next().is_some() || self.exchanges.iter().any(|e| e.on_purpose)
    }

    fn usd(&self, e: &Exchange) -> f64 {
        let Ok(reply) = &e.outcome else { return 0.0 };
        let name = e.prompt.as_ref().map(|p| &*p.model);
        let of = name.and_then(|n| model::find(n).ok()).unwrap_or(self.model);
        model::cost_of_reply(of, reply).total()
    }

    /// Returns the texts of its summaries, in order.
    pub fn summaries(&self) -> Vec<String> {
        let all = self.exchanges.iter().filter(|e| e.purpose == Purpose::Summary && !e.on_purpose);
        all.filter_map(|e| e.outcome.as_ref().ok()).map(|r| words(r).to_string()).collect()
    }

    /// Returns the faults for our implementation, by the number of the request with the same
    /// purpose.
    fn faults_of_ours(&self) -> Vec<ProviderFault> {
        let by_number = self.exchanges.iter().filter(|e| e.on_purpose);
        let by_number = by_number.filter_map(|e| {
            let on = e.purpose.fault_on()?;
            let known = self.faults.iter().any(|f| f.hits(on, e.nth));
            let error = e.outcome.as_ref().err().filter(|_| !known)?;
            // Clients treat an aborted stream as a temporary failure.
            let status = if error.status < 400 { 502 } else { error.status };
            let (code, message) = (error.code.clone(), Some(error.message.clone()));
            Some(ProviderFault {
                status: Some(status),
                code,
                message,
                ..ProviderFault::new(on, e.nth)
            })
        });
        self.faults.iter().cloned().chain(by_number).collect()
    }

    /// Returns the requests of its row, in order: without those that a fault refused, but with
    /// overflows.
    fn shots(&self) -> impl Iterator<Item = (&Exchange, &Prompt)> {
        let counts = |e: &&Exchange| match &e.outcome {
            Ok(_) => true,
            Err(error) => error.is_overflow() && !e.again && !e.on_purpose,
        };
        let all = self.exchanges.iter().filter(|e| e.is_own()).filter(counts);
        all.filter_map(|e| Some((e, e.prompt.as_ref()?)))
    }

    /// Returns the replies of faults, by the number of the request in its row.
    fn said_by_faults(&self) -> Vec<ProviderFault> {
        let mut numbers = BTreeMap::<Purpose, u64>::new();
        let said = self.shots().filter_map(|(e, _)| {
            let nth = numbers.entry(e.purpose).or_default();
            *nth += 1;
            let reply = e.outcome.as_ref().ok().filter(|_| e.on_purpose)?;
            let text = Some(words(reply).to_string());
            Some(ProviderFault { text, ..ProviderFault::new(e.purpose.fault_on()?, *nth) })
        });
        said.collect()
    }

    /// Returns a strategy that replays its requests.
    fn row(&self) -> Spec {
        let shots = self.shots().map(|(e, prompt)| replay_strategy::Shot {
            step: e.step,
            summary: e.purpose == Purpose::Summary,
            prompt: prompt.clone(),
        });
        let places = |is: fn(&Delivery) -> bool| {
            let all = self.plan.moves.iter().enumerate();
            all.filter(|(_, m)| is(&m.what)).map(|(i, _)| i).collect()
        };
        let sent = replay_strategy::AgentRequests {
            program: self.agent.title.clone(),
            version: self.version.as_deref().unwrap_or("unknown").to_string(),
            says: places(|w| matches!(w, Delivery::Say(_))),
            compacts: places(|w| matches!(w, Delivery::Compact(_))),
            shots: shots.collect(),
            summaries: self.summaries(),
        };
        replay_strategy::row(&self.agent.name, sent)
    }
}

fn words(reply: &Reply) -> &str {
    let text = |p: &'_ Part| matches!(p, Part::Compaction(Some(_)) | Part::Text(_));
    reply.parts.iter().find(|p| text(p)).map_or("", Part::text)
}

/// Drives an agent through a session.
pub fn drive(
    scenario: &Scenario,
    agent: &Agent,
    options: &DriveOptions,
) -> Result<Driven, DriveError> {
    let (session, skipped) = plan::with_turns(&scenario.session, agent.start.turns);
    let session = match agent.tool {
        Some(_) => plan::with_final_replies(&session),
        None => session,
    };
    let program = agent.locate(options.program.as_deref())?;
    let strategy = agent.strategy_with(options.model)?;
    let version = agent.version(&program, options.timeout);
    let plan = DrivePlan::new(&session, agent).map_err(|why| {
        DriveError(format!("session {} cannot be driven: {why}", session.header.id))
    })?;
    let plan = Arc::new(plan);
    let of_kinds = options.faults.iter().filter_map(|f| match &f.kind {
        FaultKind::Sort(f) => Some(f.clone()),
        FaultKind::Request(_) => None,
    });
    let faults: Vec<ProviderFault> = scenario.faults.iter().cloned().chain(of_kinds).collect();
    let director = SharedDirector::new(plan.clone(), agent, &faults);
    let assumed = window(strategy.as_ref(), options.model, options.window);
    let scratch = Scratch::new(&agent.name, options.keep);
    let mut scratch = scratch.map_err(failed_to("create the scratch folder"))?;
    let mut driven = Driven {
        agent: agent.clone(),
        version,
        strategy,
        model: options.model,
        kept: options.keep.then(|| scratch.path().to_path_buf()),
        window: assumed,
        summariser: options.summariser.clone(),
        session,
        skipped,
        faults,
        unused_faults: vec![],
        notes: Default::default(),
        plan,
        max_output: options.max_output.unwrap_or_else(|| largest_reply(options)),
        exchanges: vec![],
        end: DriveEnd::default(),
    };
    let ended = block_on(driven.run(&program, options, &director, &mut scratch));
    driven.end = ended.map_err(failed_to("start the runtime"))??;
    if shutdown::is_requested() {
        return Err(DriveError("interrupted".into()));
    }
    driven.notes = record::notes(&agent.name, driven.strategy.as_ref(), scratch.path());
    drop(scratch);
    let mut d = director.lock();
    driven.unused_faults = faults::unused_faults(&options.faults, &d);
    driven.end.stopped = d.stuck.take().or(driven.end.stopped);
    driven.exchanges = std::mem::take(&mut d.exchanges);
    Ok(driven)
}

fn failed_to(what: &'static str) -> impl Fn(io::Error) -> DriveError {
    move |why| DriveError(format!("failed to {what}: {why}"))
}

/// Returns the window in which a program works with a model, if the user asks for `given`.
fn window(program: Option<&Spec>, model: &Model, given: Option<u64>) -> u64 {
    program.and_then(|p| p.window(model, given)).or(given).unwrap_or(model.window)
}

/// Returns the largest reply in the agent's settings. In a window that the user reduces it is a
/// part of the window, since agents reserve room for a reply.
fn largest_reply(options: &DriveOptions) -> u64 {
    let own = options.model.max_output;
    let reduced = options.window.filter(|w| *w < options.model.window);
    reduced.map_or(own, |window| own.min(window / 8))
}

#[derive(Debug, Default)]
struct DriveEnd {
    /// Failed turns by number, with the message that the user saw.
    failures: Vec<(usize, String)>,
    /// Reason why the agent did not reach the end of the session.
    stopped: Option<String>,
    /// Number of the session's replies that the agent did not request.
    unasked: usize,
    /// Number of times that the user asked the agent to continue, because a turn ended too early.
    asked_to_go_on: u64,
    /// Protocol messages about its compactions.
    told: Vec<serde_json::Value>,
}

impl Driven {
    /// Serves the model, prepares the scratch folder, and runs the conversation.
    async fn run(
        &self,
        program: &Path,
        options: &DriveOptions,
        director: &SharedDirector,
        scratch: &mut Scratch,
    ) -> Result<DriveEnd, DriveError> {
        let clock = director.clone();
        let plans = options.faults.iter().filter_map(|f| match &f.kind {
            FaultKind::Request(plan) => Some(plan.clone()),
            FaultKind::Sort(_) => None,
        });
        // A scratch folder that is kept has a log of the requests.
        let log = options.keep.then(|| File::create(scratch.path().join("requests.jsonl")));
        let log = log.transpose().map_err(failed_to("create the log of its requests"))?;
        let server = Server::bind(ServeOptions {
            speaker: Some(Box::new(director.clone())),
            summariser: options.summariser.read_for(&self.session),
            facts: self.session.facts.as_slice().into(),
            faults: plans.collect(),
            window: Some(self.window),
            log: log.map(|file| Box::new(file) as _),
            log_texts: true,
            clock: Arc::new(move || clock.lock().now),
            ..ServeOptions::default()
        });
        let server = server.await.map_err(failed_to("listen on 127.0.0.1"))?;
        let upstream = server.address();
        let serving = tokio::spawn(server.run(std::future::pending()));
        let mut proxy = match &options.proxy {
            None => None,
            Some(proxy) => {
                let started = RunningProxy::start(proxy, upstream, options.timeout).await;
                Some(started.map_err(DriveError)?)
            }
        };
        let address = proxy.as_ref().map_or(upstream, |proxy| proxy.address);
        let fill = self.agent.template(program, &scratch.path().join("home")).with([
            ("scratch", scratch.path().display().to_string()),
            ("project", scratch.project().display().to_string()),
            ("url", format!("http://{address}")),
            ("model", self.model.name.to_string()),
            ("window", self.window.to_string()),
            ("max_output", self.max_output.to_string()),
        ]);
        let filled = scratch.furnish(&self.agent, &fill, &self.plan.outputs);
        filled.map_err(failed_to("fill the scratch folder"))?;
        scratch.isolate(address).map_err(failed_to("start the relay to the server"))?;
        let patience = Patience { limit: options.timeout, director: director.clone() };
        let proxy_ended = async {
            match &mut proxy {
                Some(proxy) => proxy.ended().await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = self.converse(&fill, scratch, patience) => ended,
            why = proxy_ended => DriveEnd { stopped: Some(why), ..DriveEnd::default() },
        };
        serving.abort();
        Ok(ended)
    }

    /// Runs the conversation as far as the agent continues.
    async fn converse(&self, fill: &Template, scratch: &Scratch, patience: Patience) -> DriveEnd {
        let mut ended = DriveEnd::default();
        let director = patience.director.clone();
        let mut channel = match Channel::open(&self.agent.start, fill, scratch, patience).await {
            Ok(channel) => channel,
            Err(Stopped(why)) => return DriveEnd { stopped: Some(why), ..ended },
        };
        for (i, step) in self.plan.moves.iter().enumerate() {
            director.lock().begin(i);
            let mut turn = match &step.what {
                Delivery::Wait => continue,
                Delivery::Say(words) => channel.send_message(words).await,
                Delivery::Compact(more) => channel.compact(more.as_deref()).await,
            };
            // Turns without a new reply, and the number of replies before them.
            let (mut idle, mut before) = (0, 0);
            loop {
                match turn {
                    Ok(Err(why)) => ended.failures.push((i, why)),
                    Ok(Ok(())) => {}
                    Err(Stopped(why)) => {
                        ended.stopped = Some(format!("at move {} of the session: {why}", i + 1));
                        break;
                    }
                }
                {
                    // The turn may have ended before the end of the move. The user of a replay asks
                    // the agent to continue, too.
                    let d = director.lock();
                    let further = d.arrived() > std::mem::replace(&mut before, d.arrived());
                    idle = if further { 1 } else { idle + 1 };
                    if d.stuck.is_some() || d.open_replies() == 0 || idle >= MAX_FAILURES {
                        break;
                    }
                }
                ended.asked_to_go_on += 1;
                turn = channel.send_message(GO_ON).await;
            }
            let d = director.lock();
            ended.unasked += d.open_replies();
            if ended.stopped.is_some() || d.stuck.is_some() {
                break;
            }
        }
        channel.end().await;
        ended.told = channel.compaction_notes;
        ended
    }
}
