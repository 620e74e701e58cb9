//! Drives real agents: an installed, unmodified agent runs through a session on loopback, and its
//! requests are measured like those of every other row.
//!
//! `agent` is the description of the agent, `version` the version of its program, and `plan` the
//! session translated for it. A `scratch` folder is its home, `deliver` sends it the user's
//! messages, and `director` answers as its model and records its requests. `observed_session`
//! builds the session that the agent saw. Our implementation runs on this session for comparison.
//! `replay_strategy` builds the row from the recorded requests, and `outcome` compares the two.

pub mod agent;
mod child;
mod deliver;
mod director;
mod faults;
mod observed_session;
mod outcome;
mod plan;
pub mod record;
mod replay_strategy;
mod scratch;
mod template;
mod unclassified;
mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctxbench_core::content::Part;
use ctxbench_core::model::{self, Model};
use ctxbench_core::request::Reply;
use ctxbench_provider::Prompt;
use ctxbench_scenarios::{ProviderFault, Scenario};
use ctxbench_session::Session;
use ctxbench_strategies::Spec;
use thiserror::Error;

use crate::serve::{self, Server, Summaries};
use agent::{Agent, AgentError, Purpose};
use child::{Patience, Stopped};
use ctxbench_mock::summarise::{Summariser, SummaryDesk};
use ctxbench_os::shutdown;
use ctxbench_replay::{GO_ON, MAX_FAILURES};
use director::{Exchange, SharedDirector};
use plan::{Delivery, DrivePlan};
use scratch::Scratch;
use template::Template;

pub use faults::{BadDriveFault, DriveFault};
pub use outcome::{DriveOutcome, failed, measured};

use observed_session::Extent;

/// Options of a drive.
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
}

/// Reason why an agent was not driven.
#[derive(Debug, Error)]
pub enum DriveError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error("session {id} cannot be driven: {why}")]
    Session { id: String, why: String },
    #[error("{what}: {why}")]
    Io { what: &'static str, why: std::io::Error },
    /// A signal asked ctxbench to end.
    #[error("interrupted")]
    Interrupted,
}

/// Result of a drive.
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aside {
    pub purpose: Purpose,
    pub requests: usize,
    /// Sum of prompt tokens.
    pub input_tokens: u64,
    /// Cost of the requests, USD.
    pub usd: f64,
}

impl Driven {
    /// Returns the side requests, such as titles, by purpose.
    pub fn asides(&self) -> Vec<Aside> {
        let all = director::side_requests(&self.exchanges);
        let sum = |(purpose, of): (Purpose, Vec<&Exchange>)| Aside {
            purpose,
            requests: of.len(),
            input_tokens: of.iter().copied().map(input).sum(),
            usd: of.iter().map(|e| self.usd(e)).sum(),
        };
        all.into_iter().map(sum).collect()
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

    /// Returns the session as the agent saw it.
    fn lived_to(&self, extent: Extent) -> Session {
        observed_session::observed(
            &self.session,
            &self.plan,
            &self.exchanges,
            self.max_output,
            extent,
        )
    }

    /// Returns the texts of its summaries, in order.
    pub fn summaries(&self) -> Vec<String> {
        let summaries = self.exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
        let ok = summaries.filter(|e| !e.on_purpose).filter_map(|e| e.outcome.as_ref().ok());
        ok.map(|r| words(r).to_string()).collect()
    }

    /// Returns the prompt tokens of its work and its summaries, as the provider counted them.
    fn billed(&self) -> u64 {
        let own = |e: &&Exchange| matches!(e.purpose, Purpose::Work | Purpose::Summary);
        self.exchanges.iter().filter(own).map(input).sum()
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
        let own = |e: &&Exchange| matches!(e.purpose, Purpose::Work | Purpose::Summary);
        let counts = |e: &&Exchange| match &e.outcome {
            Ok(_) => true,
            Err(error) => error.is_overflow() && !e.again && !e.on_purpose,
        };
        let all = self.exchanges.iter().filter(own).filter(counts);
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
            summaries: self.summaries().iter().map(|t| t.as_str().into()).collect(),
        };
        replay_strategy::row(&self.agent.name, sent)
    }
}

fn input(e: &Exchange) -> u64 {
    e.outcome.as_ref().map_or(0, |r| r.billed.prompt())
}

fn words(reply: &Reply) -> &str {
    reply
        .parts
        .iter()
        .find_map(|p| match p {
            Part::Compaction(Some(t)) => Some(&**t),
            p => p.as_text(),
        })
        .unwrap_or("")
}

/// Drives an agent through a session.
pub fn drive(
    scenario: &Scenario,
    agent: &Agent,
    options: &DriveOptions,
) -> Result<Driven, DriveError> {
    let session = match agent.tool {
        Some(_) => plan::with_final_replies(&scenario.session),
        None => scenario.session.clone(),
    };
    let io = |what| move |why| DriveError::Io { what, why };
    let program = agent.locate(options.program.as_deref())?;
    let strategy = agent.strategy_with(options.model)?;
    let version = agent.version(&program, options.timeout);
    let wrong = |why| DriveError::Session { id: session.header.id.clone(), why };
    let plan = Arc::new(DrivePlan::new(&session, agent).map_err(wrong)?);
    let sorted = options.faults.iter().filter_map(|f| match f {
        DriveFault::Sort(f) => Some(f.clone()),
        DriveFault::Request(_) => None,
    });
    let faults: Vec<ProviderFault> = scenario.faults.iter().cloned().chain(sorted).collect();
    let director = SharedDirector::new(plan.clone(), agent, &faults);
    let row = format!("real-{}", agent.name);
    let summariser = options.summariser.read_for(&session, &row, &agent.name);
    let window = options.window.unwrap_or(options.model.window);
    let max_output = options.max_output.unwrap_or_else(|| largest_reply(options, window));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("the runtime cannot be started"))?;
    let scratch =
        Scratch::new(&agent.name, options.keep).map_err(io("the scratch folder cannot be made"))?;
    let kept = options.keep.then(|| scratch.path().to_path_buf());
    let mut live =
        Live { agent, options, plan: &plan, director: &director, scratch, summariser: &summariser };
    let sizes = (window, max_output);
    let mut end = runtime.block_on(live.run(&session, &program, sizes))?;
    if shutdown::is_requested() {
        return Err(DriveError::Interrupted);
    }
    let notes = record::notes(&agent.name, strategy.as_ref(), live.scratch.path());
    drop(live);
    drop(runtime);
    let mut d = director.lock();
    let exchanges = std::mem::take(&mut d.exchanges);
    let made = d.request_counts(exchanges.len());
    end.stopped = d.stuck.take().or(end.stopped);
    drop(d);
    let given = scenario.faults.iter().cloned().map(DriveFault::Sort);
    let all: Vec<DriveFault> = options.faults.iter().cloned().chain(given).collect();
    Ok(Driven {
        agent: agent.clone(),
        version,
        strategy,
        model: options.model,
        kept,
        window,
        summariser: options.summariser.clone(),
        session,
        faults,
        unused_faults: faults::unused_faults(&all, made),
        notes,
        plan,
        max_output,
        exchanges,
        end,
    })
}

/// Returns the largest reply in the agent's settings. In a reduced window it is a part of the
/// window, since agents reserve room for a reply.
fn largest_reply(options: &DriveOptions, window: u64) -> u64 {
    let own = options.model.max_output;
    if window < options.model.window { own.min(window / 8) } else { own }
}

struct Live<'a> {
    agent: &'a Agent,
    options: &'a DriveOptions,
    plan: &'a DrivePlan,
    director: &'a SharedDirector,
    scratch: Scratch,
    summariser: &'a Summariser,
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

/// Counts turns of a move without progress.
#[derive(Default)]
struct Idle {
    turns: u32,
    arrived: usize,
}

impl Idle {
    /// Returns whether the user asks the agent to continue: a turn has ended before the end of the
    /// move. The user of a replay does the same.
    fn asks_again(&mut self, d: &director::Director) -> bool {
        let further = d.arrived() > std::mem::replace(&mut self.arrived, d.arrived());
        self.turns = if further { 1 } else { self.turns + 1 };
        d.stuck.is_none() && d.open_replies() > 0 && self.turns < MAX_FAILURES
    }
}

impl Live<'_> {
    async fn run(
        &mut self,
        session: &Session,
        program: &Path,
        sizes: (u64, u64),
    ) -> Result<DriveEnd, DriveError> {
        let io = |what| move |why| DriveError::Io { what, why };
        let clock = self.director.clone();
        let plans = self.options.faults.iter().filter_map(|f| match f {
            DriveFault::Request(plan) => Some(plan.clone()),
            DriveFault::Sort(_) => None,
        });
        let server = Server::bind(serve::ServeOptions {
            speaker: Some(Box::new(self.director.clone())),
            summaries: Summaries {
                by: self.summariser.clone(),
                facts: session.facts.as_slice().into(),
                desk: SummaryDesk::default(),
            },
            faults: plans.collect(),
            window: Some(sizes.0),
            log: self.log().map_err(io("the log of its requests cannot be written"))?,
            log_texts: true,
            clock: Arc::new(move || clock.lock().now),
            ..serve::ServeOptions::default()
        })
        .await
        .map_err(io("the model server cannot listen on 127.0.0.1"))?;
        let url = format!("http://{}", server.address());
        let scratch = self.scratch.path();
        let fill = Template::before_drive(self.agent, program, &scratch.join("home")).with([
            ("scratch", scratch.display().to_string()),
            ("project", self.scratch.project().display().to_string()),
            ("url", url),
            ("model", self.options.model.name.to_string()),
            ("window", sizes.0.to_string()),
            ("max_output", sizes.1.to_string()),
        ]);
        self.scratch
            .furnish(self.agent, &fill, &self.plan.outputs)
            .map_err(io("the scratch folder cannot be filled"))?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        let ended = self.converse(&fill).await;
        drop(stop);
        serving.abort();
        Ok(ended)
    }

    /// Opens a log of its requests in a scratch folder that is kept.
    fn log(&self) -> std::io::Result<Option<Box<dyn std::io::Write + Send>>> {
        if !self.options.keep {
            return Ok(None);
        }
        let file = std::fs::File::create(self.scratch.path().join("requests.jsonl"))?;
        Ok(Some(Box::new(file)))
    }

    /// Runs the conversation as far as the agent continues.
    async fn converse(&self, fill: &Template) -> DriveEnd {
        let mut ended = DriveEnd::default();
        let (start, limit) = (&self.agent.start, self.options.timeout);
        let patience = Patience { limit, director: self.director.clone() };
        let opened = deliver::open(start, fill, &self.scratch, patience).await;
        let mut channel = match opened {
            Ok(channel) => channel,
            Err(Stopped(why)) => return DriveEnd { stopped: Some(why), ..ended },
        };
        for (i, step) in self.plan.moves.iter().enumerate() {
            self.director.lock().begin(i);
            let mut turn = match &step.what {
                Delivery::Wait => continue,
                Delivery::Say(words) => channel.send_message(words).await,
                Delivery::Compact(more) => {
                    deliver::compact(&mut *channel, start, more.as_deref()).await
                }
            };
            let mut idle = Idle::default();
            loop {
                match turn {
                    Ok(Err(why)) => ended.failures.push((i, why)),
                    Ok(Ok(())) => {}
                    Err(Stopped(why)) => {
                        ended.stopped = Some(format!("at move {} of the session: {why}", i + 1));
                        break;
                    }
                }
                if !idle.asks_again(&self.director.lock()) {
                    break;
                }
                ended.asked_to_go_on += 1;
                turn = channel.send_message(GO_ON).await;
            }
            let director = self.director.lock();
            ended.unasked += director.open_replies();
            if ended.stopped.is_some() || director.stuck.is_some() {
                break;
            }
        }
        channel.end().await;
        ended.told = channel.compaction_notes();
        ended
    }
}
