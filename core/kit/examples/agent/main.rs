//! A small agent on the engine: sessions in SQLite, a checkpoint per prompt, compaction in the
//! background.
//!
//! ```text
//! ctxbench serve --port 8085
//! cargo run -p ctxbench-kit --example agent -- run http://127.0.0.1:8085 'call write {"path":"a","text":"b"}' more
//! cargo run -p ctxbench-kit --example agent -- list
//! ```

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use ctxbench_core::agent;
use ctxbench_core::history::Message;
use ctxbench_core::model::find;
use ctxbench_core::prelude::*;
use ctxbench_core::request::Tools;
use ctxbench_kit::checkpoint::EditCheckpoints;
use ctxbench_kit::rewind::Restore;
use ctxbench_kit::store::{Id, NewSession, Position, Store};
use tokio::sync::oneshot;

mod outside;
mod sessions;

/// Context size in tokens that starts a compaction. It is small, so that a few prompts show one.
const BUDGET: u64 = 100;

/// Summarizes everything before the newest prompt while the conversation continues.
struct Handoff {
    address: String,
    pending: Option<PendingSummary>,
    store: Store,
    session: Id,
    /// Number of the newest prompt's file checkpoint.
    files: Arc<AtomicU64>,
    /// Number of messages in the store.
    stored: usize,
    /// Number of stored messages that the summary covers.
    covered: usize,
}

/// A summary that a background task is writing.
struct PendingSummary {
    answer: oneshot::Receiver<Result<Reply, ModelError>>,
    /// The blocks that it replaces, at the start of the context.
    blocks: Vec<Arc<Block>>,
}

impl Handoff {
    /// Replaces the covered blocks by a finished summary, if they are still the start of the context.
    fn apply_summary(&mut self, s: &mut Engine) {
        let Some(pending) = &mut self.pending else { return };
        let answer = match pending.answer.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => return,
            answer => answer,
        };
        let blocks = self.pending.take().map(|p| p.blocks).unwrap_or_default();
        let view = s.context.blocks().to_vec();
        let is_unchanged = view.len() >= blocks.len()
            && view.iter().zip(&blocks).all(|(a, b)| (a.message, a.hash) == (b.message, b.hash));
        let (Ok(Ok(reply)), true) = (answer, is_unchanged) else { return };
        let text = reply.text().unwrap_or_default();
        let mut all = vec![s.synthetic(BlockKind::Summary, Role::User, text, origins(&blocks))];
        all.extend_from_slice(&view[blocks.len()..]);
        if s.compacted(CompactionKind::Summarise, "handoff", Phase::Background, all).is_ok() {
            self.store_summary(s);
        }
    }

    /// Stores the summary and the messages after the part that it covers.
    fn store_summary(&mut self, s: &Engine) {
        let summary =
            s.context.blocks().iter().rfind(|b| b.kind == BlockKind::Summary).map(|b| &*b.text);
        let since = stored(&s.history.messages()[self.covered..self.stored]);
        self.store.compact(self.session, summary, &since).expect("the store can be written");
    }
}

/// Converts messages for the store; requests of the strategy itself are left out.
fn stored(messages: &[Message]) -> Vec<(Role, Vec<Part>)> {
    let recorded = messages.iter().filter(|m| !m.synthetic);
    recorded.map(|m| (m.role, m.parts.to_vec())).collect()
}

#[async_trait]
impl Strategy for Handoff {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.apply_summary(s);
        let newest =
            s.context.blocks().iter().rposition(|b| b.kind == BlockKind::User).unwrap_or(0);
        if self.pending.is_none() && newest > 1 && s.billed_tokens() > BUDGET {
            let blocks = s.context.blocks()[..newest].to_vec();
            let mut shown = blocks.clone();
            shown.push(s.synthetic(
                BlockKind::SummaryPrompt,
                Role::User,
                "Sum up what was said and done so far.",
                vec![],
            ));
            let request = s.summary_request(Phase::Background, shown, true);
            self.covered = self.stored;
            let (sender, answer) = oneshot::channel();
            let work = outside::post(self.address.clone(), request);
            tokio::spawn(async move { sender.send(work.await) });
            self.pending = Some(PendingSummary { answer, blocks });
        }
        Flow::Proceed
    }
    async fn after_turn(&mut self, s: &mut Engine) {
        let new = stored(&s.history.messages()[self.stored..]);
        let ids = self.store.append_messages(self.session, &new).expect("the store can be written");
        if let Some((prompt, _)) = ids.first() {
            let files = Some(self.files.load(Ordering::Relaxed));
            self.store
                .add_checkpoint(self.session, Position::Before(*prompt), None, files)
                .expect("the store can be written");
        }
        self.stored = s.history.messages().len();
    }
}

/// Runs one conversation and returns the final context.
pub async fn converse(
    address: &str,
    folder: &Path,
    prompts: Vec<String>,
) -> Result<Vec<Arc<Block>>, Box<dyn Error>> {
    let kept = folder.join(".agent");
    let files = EditCheckpoints::open(folder, &kept)?;
    let mut store = Store::open(kept.join("sessions.db"))?;
    // A session in a folder follows the previous one and starts with its summary.
    let session = store.create_session(&NewSession {
        parent: store.sessions()?.iter().rfind(|s| s.forked_at.is_none()).map(|s| s.id),
        title: "a conversation".into(),
    })?;
    let inherited = store.inherited_summary(session)?;
    let number = Arc::new(AtomicU64::new(0));
    let here = outside::Here {
        address: address.into(),
        folder: folder.into(),
        prompts: prompts.into_iter(),
        files,
        number: number.clone(),
    };
    let mut engine = Engine::new(Arc::new(find("claude-sonnet-4-6")?.clone()), Box::new(here));
    engine.fixed.tools =
        Tools::new(&[serde_json::json!({"name": "write", "input_schema": {"type": "object"}})]);
    engine.fixed.context.extend(inherited.map(|(_, summary)| {
        let text = format!("An earlier session ended with this summary:\n{summary}");
        ephemeral_block(BlockKind::Context, Role::User, text)
    }));
    let mut strategy = Handoff {
        address: address.into(),
        pending: None,
        store,
        session,
        files: number,
        stored: 0,
        covered: 0,
    };
    agent::run(&mut engine, &mut strategy).await;
    Ok(engine.context.blocks().to_vec())
}

#[derive(Parser)]
struct Cli {
    /// Project folder with the agent's data in FOLDER/.agent
    #[arg(long, global = true, default_value = ".")]
    folder: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a conversation
    Run { address: String, prompts: Vec<String> },
    /// List the sessions of the folder and their checkpoints
    List,
    /// Show the messages of a session
    Show { session: Id },
    /// Create a session that continues after a message
    Fork { session: Id, message: Id },
    /// Rewind to a message or checkpoint; discarded messages stay in a fork
    Rewind {
        session: Id,
        to: Id,
        #[arg(value_parser = restore())]
        restore: Restore,
    },
}

/// Parses the part of a session to restore.
fn restore() -> impl TypedValueParser<Value = Restore> {
    PossibleValuesParser::new(["code", "conversation", "both"]).map(|part| match part.as_str() {
        "code" => Restore::Code,
        "conversation" => Restore::Conversation,
        _ => Restore::Both,
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    let folder = &*cli.folder;
    let kept = || sessions::open(folder);
    let text = match cli.command {
        Command::Run { address, prompts } => {
            let context = converse(&address, folder, prompts).await?;
            context.iter().map(|b| format!("{:?}: {}\n", b.kind, b.text)).collect()
        }
        Command::List => sessions::list(&kept()?)?,
        Command::Show { session } => sessions::show(&kept()?, session)?,
        Command::Fork { session, message } => {
            let store = &mut kept()?.store;
            let title = format!("{} (fork)", store.session(session)?.title);
            format!("{}\n", store.fork(session, message, &title)?)
        }
        Command::Rewind { session, to, restore } => {
            sessions::rewind(&mut kept()?, session, to, restore)?
        }
    };
    print!("{text}");
    Ok(())
}
