//! Real agents as rows: an installed, unmodified agent is driven through a session on loopback, and
//! what it sent its model is measured like every other row.
//!
//! `agent` is its description, `version` what its program says of itself, `plan` the session in
//! its terms. A `scratch` folder is its home, `deliver` brings it the user's words, `director`
//! answers as its model and keeps what it asked. `lived` makes of that the session as the agent
//! lived it, on which our implementation runs beside it, and `shown` the row of what it sent;
//! `outcome` measures both and holds the two together.

pub mod agent;
mod child;
mod deliver;
mod director;
mod extended;
mod faults;
mod fill;
mod lived;
mod outcome;
mod plan;
pub mod record;
mod scratch;
mod shown;
mod unsaid;
mod version;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ctxbench_core::content::Part;
use ctxbench_core::model::{self, Model};
use ctxbench_core::request::Reply;
use ctxbench_core::session::Session;
use ctxbench_provider::Prompt;
use ctxbench_provider::wire::Wire;
use ctxbench_scenarios::{FaultOn, ProviderFault, Scenario};
use ctxbench_strategies::Spec;
use thiserror::Error;

use crate::replay::{GO_ON, MOST_FAILURES};
use crate::serve::{self, Server, Summaries};
use crate::shutdown;
use crate::summarise::{Summariser, SummaryDesk};
use agent::{Agent, AgentError, Purpose};
use child::{Patience, Stopped};
use deliver::Turn;
use director::{Exchange, Shared};
use fill::Fill;
use plan::{Plan, What};
use scratch::Scratch;

pub use faults::{BadDriveFault, Fault};
pub use outcome::{Outcome, failed, measured};
pub use version::NoVersion;

use lived::Extent;

/// How an agent is driven.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its model.
    pub model: &'static Model,
    /// Window instead of the model's, tokens.
    pub window: Option<u64>,
    /// Largest reply instead of the model's, tokens.
    pub max_output: Option<u64>,
    /// Who writes its summaries.
    pub summariser: Summariser,
    /// What the provider does wrong beside what the scenario says.
    pub faults: Vec<Fault>,
    /// The scratch folder stays.
    pub keep: bool,
    /// How long the agent may neither say nor ask anything.
    pub timeout: Duration,
    /// Where the program is, instead of in PATH.
    pub program: Option<PathBuf>,
}

/// Why an agent was not driven.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The agent.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The session cannot be delivered.
    #[error("session {id} cannot be driven: {why}")]
    Session {
        /// Which.
        id: String,
        /// Why.
        why: String,
    },
    /// The scratch folder or the server.
    #[error("{what}: {why}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: std::io::Error,
    },
    /// A signal asked ctxbench to end.
    #[error("interrupted")]
    Interrupted,
}

/// What an agent did with a session.
#[derive(Debug)]
pub struct Driven {
    /// Its description's name.
    pub agent: String,
    /// Its name for people.
    pub title: String,
    /// The version that it says it has, or why it is not known.
    pub version: Result<String, NoVersion>,
    /// Our implementation of it.
    pub strategy: Option<Spec>,
    /// Model it was run with.
    pub model: &'static Model,
    /// Turns that failed, by their number, with what the user read.
    pub failures: Vec<(usize, String)>,
    /// Why the agent did not come to the session's end.
    pub stopped: Option<String>,
    /// Replies of the session that it did not ask for.
    pub unasked: usize,
    /// How often the user asked it to go on, because a turn ended before all of it was said.
    pub asked_to_go_on: u64,
    /// The scratch folder, where it was kept.
    pub kept: Option<PathBuf>,
    /// The window that it was told of, tokens.
    pub window: u64,
    summariser: Summariser,
    /// What it was driven through.
    session: Session,
    faults: Vec<ProviderFault>,
    /// What is to be said of the faults that never struck.
    unstruck: Vec<String>,
    /// What it left on disk that its cases need.
    notes: serde_json::Map<String, serde_json::Value>,
    /// What it said of its compactions beside its requests.
    told: Vec<serde_json::Value>,
    plan: Plan,
    max_output: u64,
    exchanges: Vec<Exchange>,
}

/// Requests beside the work, of one sort.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aside {
    /// What they were for.
    pub purpose: Purpose,
    /// How many.
    pub requests: usize,
    /// Prompt tokens of all.
    pub input_tokens: u64,
    /// What they cost.
    pub usd: f64,
}

impl Driven {
    /// Requests for titles and the like.
    pub fn asides(&self) -> Vec<Aside> {
        let all = director::beside(&self.exchanges);
        let sum = |(purpose, of): (Purpose, Vec<&Exchange>)| Aside {
            purpose,
            requests: of.len(),
            input_tokens: of.iter().map(|e| input(e)).sum(),
            usd: of.iter().map(|e| self.usd(e)).sum(),
        };
        all.into_iter().map(sum).collect()
    }

    /// Requests that the provider refused or broke off, with their status.
    pub fn refused(&self) -> Vec<u16> {
        self.exchanges.iter().filter(|e| e.outcome.is_err()).map(|e| e.http).collect()
    }

    /// Whether it came so far that there is something to measure: its model answered it, or did not
    /// because it was to be so, or because the agent sent too much.
    fn has_asked(&self) -> bool {
        self.shots().next().is_some() || self.exchanges.iter().any(|e| e.on_purpose)
    }

    fn usd(&self, e: &Exchange) -> f64 {
        let Ok(reply) = &e.outcome else { return 0.0 };
        let name = e.prompt.as_ref().map(|p| &*p.model);
        let of = name.and_then(|n| model::find(n).ok()).unwrap_or(self.model);
        model::cost_of_reply(of, reply).total()
    }

    /// The session as the agent lived it, with all that is left of it where the agent did not come
    /// to its end.
    pub fn lived(&self) -> Session {
        self.lived_to(Extent::Whole)
    }

    fn lived_to(&self, extent: Extent) -> Session {
        lived::lived(&self.session, &self.plan, &self.exchanges, self.max_output, extent)
    }

    /// The texts of the summaries that it got, in order.
    pub fn summaries(&self) -> Vec<String> {
        let summaries = self.exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
        let ok = summaries.filter(|e| !e.on_purpose).filter_map(|e| e.outcome.as_ref().ok());
        ok.map(|r| words(r).to_string()).collect()
    }

    /// Prompt tokens of its own work and its summaries, and dollars, as the provider counted them.
    pub fn billed(&self) -> (u64, f64) {
        let ok = self.exchanges.iter().filter(|e| e.outcome.is_ok());
        let own = ok.filter(|e| matches!(e.purpose, Purpose::Work | Purpose::Summary));
        own.fold((0, 0.0), |(tokens, usd), e| (tokens + input(e), usd + self.usd(e)))
    }

    /// The format in which it speaks to its model.
    pub fn wire(&self) -> Option<Wire> {
        lived::work(&self.exchanges).find_map(|(e, _)| e.wire)
    }

    /// What the provider did wrong, as our implementation meets it: by the number of the request
    /// among those of its sort.
    fn faults_of_ours(&self) -> Vec<ProviderFault> {
        let by_number = self.exchanges.iter().filter(|e| e.on_purpose);
        let by_number = by_number.filter_map(|e| {
            let on = match e.purpose {
                Purpose::Work => FaultOn::Sample,
                Purpose::Summary => FaultOn::Summary,
                _ => return None,
            };
            let known = self.faults.iter().any(|f| f.hits(on, e.nth));
            let error = e.outcome.as_ref().err().filter(|_| !known)?;
            // A stream that breaks off is a failure that passes, as far as clients care.
            let status = if error.status < 400 { 502 } else { error.status };
            Some(ProviderFault {
                on,
                nth: e.nth,
                times: 1,
                status: Some(status),
                code: error.code.clone(),
                message: Some(error.message.clone()),
                text: None,
                tokens: None,
                after_ms: 0,
            })
        });
        self.faults.iter().cloned().chain(by_number).collect()
    }

    /// The requests that make its row, in order. What was refused on purpose is no part of it; an
    /// overflow is.
    fn shots(&self) -> impl Iterator<Item = (&Exchange, &Prompt)> {
        let own = |e: &&Exchange| matches!(e.purpose, Purpose::Work | Purpose::Summary);
        let counts = |e: &&Exchange| match &e.outcome {
            Ok(_) => true,
            Err(error) => error.is_overflow() && !e.again && !e.on_purpose,
        };
        let all = self.exchanges.iter().filter(own).filter(counts);
        all.filter_map(|e| Some((e, e.prompt.as_ref()?)))
    }

    /// What faults said in the place of a reply, by the number among the requests of its row.
    fn said_by_faults(&self) -> Vec<ProviderFault> {
        let mut numbers = [0, 0];
        let mut out = vec![];
        for (e, _) in self.shots() {
            let summary = e.purpose == Purpose::Summary;
            let on = if summary { FaultOn::Summary } else { FaultOn::Sample };
            let nth = &mut numbers[usize::from(summary)];
            *nth += 1;
            let (nth, Ok(reply)) = (*nth, &e.outcome) else { continue };
            if e.on_purpose {
                let text = Some(words(reply).to_string());
                let (status, code, message, tokens) = (None, None, None, None);
                let (times, after_ms) = (1, 0);
                out.push(ProviderFault {
                    on,
                    nth,
                    times,
                    status,
                    code,
                    message,
                    text,
                    tokens,
                    after_ms,
                });
            }
        }
        out
    }

    /// What it sent, as a strategy.
    fn row(&self) -> Spec {
        let shots = self.shots().map(|(e, prompt)| shown::Shot {
            step: e.step,
            summary: e.purpose == Purpose::Summary,
            prompt: prompt.clone(),
        });
        let places = |is: fn(&What) -> bool| {
            let all = self.plan.moves.iter().enumerate();
            all.filter(|(_, m)| is(&m.what)).map(|(i, _)| i).collect()
        };
        let sent = shown::Sent {
            program: self.title.clone(),
            version: self.version.as_deref().unwrap_or("unknown").to_string(),
            says: places(|w| matches!(w, What::Say(_))),
            compacts: places(|w| matches!(w, What::Compact(_))),
            shots: shots.collect(),
            summaries: self.summaries().iter().map(|t| t.as_str().into()).collect(),
        };
        shown::row(&self.agent, sent)
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
pub fn drive(scenario: &Scenario, agent: &Agent, options: &Options) -> Result<Driven, DriveError> {
    let session = match agent.tool {
        Some(_) => plan::with_last_words(&scenario.session),
        None => scenario.session.clone(),
    };
    let io = |what| move |why| DriveError::Io { what, why };
    let program = agent.locate(options.program.as_deref())?;
    let strategy = agent.strategy_with(options.model)?;
    let version = agent.version(&program, options.timeout);
    let wrong = |why| DriveError::Session { id: session.header.id.clone(), why };
    let plan = Arc::new(Plan::of(&session, agent).map_err(wrong)?);
    let sorted = options.faults.iter().filter_map(|f| match f {
        Fault::Sort(f) => Some(f.clone()),
        Fault::Request(_) => None,
    });
    let faults: Vec<ProviderFault> = scenario.faults.iter().cloned().chain(sorted).collect();
    let director = Shared::new(plan.clone(), agent, &faults);
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
    let ended = runtime.block_on(live.run(&session, &program, sizes))?;
    if shutdown::is_requested() {
        return Err(DriveError::Interrupted);
    }
    let notes = record::notes(&agent.name, strategy.as_ref(), live.scratch.path());
    drop(live);
    drop(runtime);
    let Ended { failures, stopped, unasked, asked_to_go_on, told } = ended;
    let mut d = director.lock();
    let exchanges = std::mem::take(&mut d.exchanges);
    let made = d.made(exchanges.len());
    let stopped = d.stuck.take().or(stopped);
    drop(d);
    drop(director);
    let asked = options.faults.iter().cloned();
    let all: Vec<Fault> = asked.chain(scenario.faults.iter().cloned().map(Fault::Sort)).collect();
    let unstruck = faults::unstruck(&all, made);
    let plan = Arc::try_unwrap(plan).unwrap_or_default();
    Ok(Driven {
        agent: agent.name.clone(),
        title: agent.title.clone(),
        version,
        strategy,
        model: options.model,
        failures,
        stopped,
        unasked,
        asked_to_go_on,
        kept,
        window,
        summariser: options.summariser.clone(),
        session,
        faults,
        unstruck,
        notes,
        told,
        plan,
        max_output,
        exchanges,
    })
}

/// The largest reply that an agent is told its model can give: in a window made small a part of it,
/// since agents keep room for it free.
fn largest_reply(options: &Options, window: u64) -> u64 {
    let own = options.model.max_output;
    if window < options.model.window { own.min(window / 8) } else { own }
}

/// A conversation under way.
struct Live<'a> {
    agent: &'a Agent,
    options: &'a Options,
    plan: &'a Plan,
    director: &'a Shared,
    scratch: Scratch,
    summariser: &'a Summariser,
}

#[derive(Default)]
struct Ended {
    failures: Vec<(usize, String)>,
    stopped: Option<String>,
    unasked: usize,
    asked_to_go_on: u64,
    told: Vec<serde_json::Value>,
}

/// Turns of a move that brought the session no further.
#[derive(Default)]
struct Idle {
    turns: u32,
    arrived: usize,
}

impl Idle {
    /// Whether the user asks to go on, as the user of a replay does: a turn has ended, and not all
    /// of the move was said.
    fn asks_again(&mut self, d: &director::Director) -> bool {
        let further = d.arrived() > std::mem::replace(&mut self.arrived, d.arrived());
        self.turns = if further { 1 } else { self.turns + 1 };
        d.stuck.is_none() && d.left() > 0 && self.turns < MOST_FAILURES
    }
}

impl Live<'_> {
    async fn run(
        &mut self,
        session: &Session,
        program: &Path,
        sizes: (u64, u64),
    ) -> Result<Ended, DriveError> {
        let io = |what| move |why| DriveError::Io { what, why };
        let clock = self.director.clone();
        let plans = self.options.faults.iter().filter_map(|f| match f {
            Fault::Request(plan) => Some(plan.clone()),
            Fault::Sort(_) => None,
        });
        let server = Server::bind(serve::Options {
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
            ..serve::Options::default()
        })
        .await
        .map_err(io("the model server cannot listen on 127.0.0.1"))?;
        let url = format!("http://{}", server.address());
        let (scratch, model) = (self.scratch.path(), &self.options.model.name);
        let fill = Fill::new(program, self.agent.here.as_deref(), scratch, &url, model, sizes);
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

    /// Of a scratch folder that is kept, what the agent asked is a part.
    fn log(&self) -> std::io::Result<Option<Box<dyn std::io::Write + Send>>> {
        if !self.options.keep {
            return Ok(None);
        }
        let file = std::fs::File::create(self.scratch.path().join("requests.jsonl"))?;
        Ok(Some(Box::new(file)))
    }

    /// The whole conversation, as far as the agent comes.
    async fn converse(&self, fill: &Fill) -> Ended {
        let mut ended = Ended::default();
        let limit = self.options.timeout;
        let patience = Patience { limit, director: self.director.clone() };
        let opened = deliver::open(self.agent, fill, &self.scratch, patience).await;
        let mut channel = match opened {
            Ok(channel) => channel,
            Err(Stopped(why)) => return Ended { stopped: Some(why), ..ended },
        };
        for (i, step) in self.plan.moves.iter().enumerate() {
            self.director.lock().begin(i);
            let mut turn = match &step.what {
                What::Wait => continue,
                What::Say(words) => channel.say(words).await.map(Some),
                What::Compact(more) => channel.compact(more.as_deref()).await,
            };
            let mut idle = Idle::default();
            loop {
                match turn {
                    Ok(Some(Turn::Failed(why))) => ended.failures.push((i, why)),
                    Ok(_) => {}
                    Err(Stopped(why)) => {
                        ended.stopped = Some(format!("at move {} of the session: {why}", i + 1));
                        break;
                    }
                }
                if !idle.asks_again(&self.director.lock()) {
                    break;
                }
                ended.asked_to_go_on += 1;
                turn = channel.say(GO_ON).await.map(Some);
            }
            let director = self.director.lock();
            ended.unasked += director.left();
            if ended.stopped.is_some() || director.stuck.is_some() {
                break;
            }
        }
        channel.end().await;
        ended.told = channel.told();
        ended
    }
}
