//! A small agent on the engine: sessions in SQLite, a checkpoint per prompt, compaction in the
//! background. `ctxbench serve --port 8085`, then `cargo run -p ctxbench-kit --example agent --
//! http://127.0.0.1:8085 FOLDER 'call write {"path":"a","text":"b"}' more`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{error::Error, path::Path};

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::compaction::{origins, passing};
use ctxbench_core::request::{ModelError, Phase, Reply, Tools};
use ctxbench_core::{Engine, Flow, Strategy, agent, async_trait, history::Message, model::find};
use ctxbench_kit::background::{Background, Swap};
use ctxbench_kit::checkpoint::{EditCheckpoints, Keep};
use ctxbench_kit::rewind::manifest;
use ctxbench_kit::store::{NewCheckpoint, NewPart, NewSession, Place, Store, Ulid};

mod outside;

const BUDGET: u64 = 100; // Tokens; small, so that a few prompts show a compaction.
/// Above the budget everything before the newest prompt becomes a summary, written while the
/// conversation goes on.
struct Handoff {
    address: String,
    writing: Option<Background<Reply, ModelError>>,
    store: Store,
    session: Ulid,
    /// Number of the newest prompt's checkpoint of files.
    files: Arc<AtomicU64>,
    /// Messages in the store, and those of them that the summary covers.
    stored: usize,
    covered: usize,
}

impl Handoff {
    /// A session that is opened again begins with the summary and what was said since the part that
    /// it covers.
    fn store_summary(&mut self, s: &Engine) {
        let summary =
            s.context.blocks().iter().rfind(|b| b.kind == BlockKind::Summary).map(|b| &*b.text);
        let since = stored(&s.history.messages()[self.covered..self.stored]);
        self.store.compact(self.session, summary, &since).expect("the store can be written");
    }
}

/// What was said; what the strategy itself asked for is no part of it.
fn stored(messages: &[Message]) -> Vec<(Role, Vec<NewPart>)> {
    let said = messages.iter().filter(|m| !m.synthetic);
    said.map(|m| (m.role, m.parts.iter().map(NewPart::from).collect())).collect()
}

fn summary(s: &mut Engine, reply: Reply, covered: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let origin = origins(covered);
    vec![s.synthetic(BlockKind::Summary, Role::User, reply.text().unwrap_or_default(), origin)]
}

#[async_trait]
impl Strategy for Handoff {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        match self.writing.as_mut().map(|w| w.swap(s, "handoff", summary)) {
            None | Some(Swap::Running) => {}
            Some(ended) => {
                self.writing = None;
                if ended == Swap::Swapped {
                    self.store_summary(s);
                }
            }
        }
        let newest =
            s.context.blocks().iter().rposition(|b| b.kind == BlockKind::User).unwrap_or(0);
        if self.writing.is_none() && newest > 1 && s.billed_tokens() > BUDGET {
            let mut blocks = s.context.blocks()[..newest].to_vec();
            blocks.push(s.synthetic(
                BlockKind::SummaryPrompt,
                Role::User,
                "Sum up what was said and done so far.",
                vec![],
            ));
            let request = s.summary_request(Phase::Background, blocks, true);
            self.covered = self.stored;
            self.writing =
                Some(Background::spawn(s, 0..newest, outside::post(self.address.clone(), request)));
        }
        Flow::Proceed
    }
    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> Flow {
        let (model, usage) = (&s.model.name, &reply.billed);
        self.store.add_usage(self.session, None, model, usage).expect("the store can be written");
        Flow::Proceed
    }
    async fn after_turn(&mut self, s: &mut Engine) {
        let new = stored(&s.history.messages()[self.stored..]);
        let ids = self.store.append_messages(self.session, &new).expect("the store can be written");
        let files = manifest(Some(self.files.load(Ordering::Relaxed)));
        if let Some(prompt) = ids.first() {
            let new = NewCheckpoint::new(Place::Before(*prompt), files);
            self.store.add_checkpoint(self.session, &new).expect("the store can be written");
        }
        self.stored = s.history.messages().len();
    }
}

/// One conversation, and what the context holds at its end.
pub async fn converse(
    address: &str,
    folder: &Path,
    prompts: Vec<String>,
) -> Result<Vec<Arc<Block>>, Box<dyn Error>> {
    let kept = folder.join(".agent");
    let files = EditCheckpoints::open(folder, &kept, Keep::default())?;
    let mut store = Store::open(kept.join("sessions.db"))?;
    // The next session in a folder follows the one before, and is told what that one summed up.
    let session = store.create_session(&NewSession {
        parent: store.overview()?.iter().rfind(|o| o.forked_at.is_none()).map(|o| o.id),
        title: "a conversation".into(),
        directory: folder.canonicalize()?.display().to_string(),
        ..Default::default()
    })?;
    let told = store.inherited(session)?;
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
    engine.fixed.context.extend(told.map(|(_, summary)| {
        let text = format!("An earlier session ended with this summary:\n{summary}");
        passing(BlockKind::Context, Role::User, text)
    }));
    let mut strategy = Handoff {
        address: address.into(),
        writing: None,
        store,
        session,
        files: number,
        stored: 0,
        covered: 0,
    };
    agent::run(&mut engine, &mut strategy).await;
    Ok(engine.context.blocks().to_vec())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (address, folder) =
        arguments.next().zip(arguments.next()).ok_or("agent ADDRESS FOLDER PROMPT…")?;
    let shown = converse(&address, Path::new(&folder), arguments.collect()).await?.into_iter();
    shown.for_each(|b| println!("{:?}: {}", b.kind, b.text));
    Ok(())
}
