//! `ctxbench sessions`.

use std::fmt::Write;

use anyhow::bail;
use ctxbench_core::counted::many;
use ctxbench_core::model;
use ctxbench_core::request::Usage;
use ctxbench_kit::store::{LoadedMessage, Overview, Place, Store, Ulid};
use ctxbench_reports::printable;
use serde_json::{Value, json};

use super::{What, Which, find, now, told, words};

#[derive(clap::Args)]
#[command(
    after_help = "An ID is the whole id, or as many of its last characters as name only one (at \
    least 4).\nRecordings in files and folders are listed by `ctxbench list sessions`."
)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    #[command(subcommand)]
    what: Option<Do>,
}

#[derive(clap::Subcommand)]
enum Do {
    /// Every session: last change, messages, tokens, children, model, title (the default)
    List,
    /// A session's messages in short, with its compactions and checkpoints
    Show {
        /// Session
        id: String,
    },
    /// Begin a session that goes on from a message of another
    Fork {
        /// Session
        id: String,
        /// Its last message that the fork has [default: the newest]
        #[arg(long, value_name = "MESSAGE")]
        at: Option<String>,
        /// Title of the fork [default: that of the session with "(fork)"]
        #[arg(long)]
        title: Option<String>,
    },
    /// Where two sessions part, and how they go on
    Compare {
        /// Session
        a: String,
        /// Another one
        b: String,
    },
    /// Go back; what is given up lives on as a session of its own
    Rewind {
        /// Session
        id: String,
        /// Message that becomes the last one, or checkpoint by id or name
        #[arg(long, value_name = "MESSAGE|CHECKPOINT")]
        to: String,
        /// What goes back
        #[arg(long, value_enum)]
        restore: What,
    },
}

impl Do {
    fn only_reads(&self) -> bool {
        matches!(self, Do::List | Do::Show { .. } | Do::Compare { .. })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let which = &args.which;
    let what = args.what.as_ref().unwrap_or(&Do::List);
    let mut kept = which.open(what.only_reads())?;
    let session = |store: &Store, id: &str| find::session(store, which.path(), id);
    match what {
        Do::List => list(which, kept.store()),
        Do::Show { id } => show(which, kept.store(), session(kept.store(), id)?),
        Do::Compare { a, b } => {
            let (a, b) = (session(kept.store(), a)?, session(kept.store(), b)?);
            compare(which, kept.store(), a, b)
        }
        Do::Fork { id, at, title } => {
            let id = session(kept.store(), id)?;
            let at = match at {
                Some(at) => find::message(kept.store(), id, at)?,
                None => match kept.store().load_context(id)?.last() {
                    Some(newest) => newest.id,
                    None => bail!("session {id} has no messages, so nothing goes on from it"),
                },
            };
            let of = kept.store().session(id)?.title;
            let title = title.clone().unwrap_or_else(|| format!("{of} (fork)"));
            let fork = kept.store_mut().fork(id, at, &title)?;
            let text = format!("session {fork} goes on behind message {at}");
            let json = json!({
                "id": fork.to_string(), "parent": id.to_string(), "forked_at": at.to_string(),
                "title": title,
            });
            which.print(&text, &json)
        }
        Do::Rewind { id, to, restore } => {
            let id = session(kept.store(), id)?;
            let to = find::target(kept.store(), id, to)?;
            let done = kept.rewind(id, &to, (*restore).into(), now())?;
            told(which, &done)
        }
    }
}

/// A session with what costs a look into its messages.
struct Seen {
    o: Overview,
    context: Vec<LoadedMessage>,
    usage: std::collections::BTreeMap<String, Usage>,
}

impl Seen {
    fn of(store: &Store, o: Overview) -> anyhow::Result<Seen> {
        let (context, usage) = (store.load_context(o.id)?, store.usage(o.id)?);
        Ok(Seen { o, context, usage })
    }

    fn models(&self) -> String {
        let names: Vec<String> = self.usage.keys().map(|m| printable(m)).collect();
        if names.is_empty() { "-".to_string() } else { names.join(",") }
    }

    /// `None` = no reply was noted.
    fn billed(&self) -> Option<u64> {
        (!self.usage.is_empty()).then(|| self.usage.values().map(Usage::total).sum())
    }

    /// `None` = nothing was noted, or a model has no price.
    fn cost_usd(&self) -> Option<f64> {
        let price = |(name, usage): (&String, &Usage)| {
            model::find_recorded(name).map(|m| model::cost(m, usage).total())
        };
        let all: Option<Vec<f64>> = self.usage.iter().map(price).collect();
        all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }

    fn row(&self) -> String {
        let o = &self.o;
        format!(
            "{}  {}  {:>8}  {:>9}  {:>9}  {:>8}  {:<18}  {}",
            o.id,
            words::time(o.updated_at),
            o.messages,
            format!("~{}", words::tokens(&self.context)),
            self.billed().map_or_else(|| "n/a".to_string(), |n| n.to_string()),
            o.children.len(),
            self.models(),
            words::short(&o.session.title),
        )
    }

    fn json(&self) -> Value {
        let o = &self.o;
        json!({
            "id": o.id.to_string(),
            "title": o.session.title,
            "project": o.session.project,
            "directory": o.session.directory,
            "parent": o.session.parent.map(|p| p.to_string()),
            "forked_at": o.forked_at.map(|p| p.to_string()),
            "children": o.children.iter().map(Ulid::to_string).collect::<Vec<_>>(),
            "created_ms": o.created_at,
            "updated_ms": o.updated_at,
            "compacted_ms": o.compacted_at,
            "messages": o.messages,
            "context_messages": self.context.len(),
            "context_tokens_estimated": words::tokens(&self.context),
            "models": self.usage.keys().collect::<Vec<_>>(),
            "billed_tokens": self.billed(),
            "cost_usd": self.cost_usd(),
        })
    }
}

fn list(which: &Which, store: &Store) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for o in store.overview()? {
        let seen = Seen::of(store, o)?;
        rows.push((seen.row(), seen.json()));
    }
    let head = format!(
        "{:<26}  {:<19}  messages    context     billed  children  {:<18}  title",
        "id", "last change (UTC)", "model"
    );
    which.print_rows(&head, &format!("no sessions in {}", which.path().display()), rows)
}

fn show(which: &Which, store: &Store, id: Ulid) -> anyhow::Result<()> {
    let all = store.overview()?;
    let title = |id: Ulid| {
        let found = all.iter().find(|o| o.id == id);
        found.map_or_else(|| "deleted".to_string(), |o| words::short(&o.session.title))
    };
    let Some(o) = all.iter().find(|o| o.id == id).cloned() else {
        bail!("session {id} is no longer there")
    };
    let seen = Seen::of(store, o)?;
    let (log, checkpoints) = (store.log(id)?, store.checkpoints(id)?);
    let o = &seen.o;
    let mut out = format!("session {id}  {}\n", words::short(&o.session.title));
    let _ = writeln!(
        out,
        "began {}, last change {}{}",
        words::time(o.created_at),
        words::time(o.updated_at),
        match &*o.session.directory {
            "" => String::new(),
            folder => format!(", in {}", printable(folder)),
        }
    );
    let _ = writeln!(
        out,
        "{} so far; the next request shows {} (~{} tokens); billed {}",
        many(log.len(), "message"),
        seen.context.len(),
        words::tokens(&seen.context),
        match (seen.billed(), seen.cost_usd()) {
            (None, _) => "n/a".to_string(),
            (Some(n), None) => format!("{n} tokens by {}", seen.models()),
            (Some(n), Some(usd)) => format!("{n} tokens by {} (${usd:.4})", seen.models()),
        }
    );
    if let Some(parent) = o.session.parent {
        let at = o.forked_at.map_or("child of".to_string(), |m| format!("forked behind {m} of"));
        let _ = writeln!(out, "{at} {parent}  {}", title(parent));
    }
    for child in &o.children {
        let _ = writeln!(out, "parent of {child}  {}", title(*child));
    }
    out.push('\n');
    for m in &log {
        let at = |place: Place| {
            let here = checkpoints.iter().filter(move |c| c.what.place == place);
            here.map(|c| format!("  {}  * {}\n", c.id, words::checkpoint(c))).collect::<String>()
        };
        let _ = write!(
            out,
            "{}{}\n{}",
            at(Place::Before(m.id)),
            words::message(m),
            at(Place::Behind(m.id))
        );
    }
    let mut json = seen.json();
    json["log"] = log.iter().map(words::message_json).collect();
    json["checkpoints"] = checkpoints.iter().map(words::checkpoint_json).collect();
    which.print(&out, &json)
}

fn compare(which: &Which, store: &Store, a: Ulid, b: Ulid) -> anyhow::Result<()> {
    let p = store.compare(a, b)?;
    let pruned = |id: Ulid| -> anyhow::Result<usize> {
        let log = store.log(id)?;
        Ok(log.iter().flat_map(|m| &m.parts).filter(|p| p.compacted_at.is_some()).count())
    };
    let mut out = match p.shared.last() {
        None => "nothing in common\n".to_string(),
        Some(last) => {
            let n = p.shared.len();
            format!("{} in common, the last:\n  {}\n", many(n, "message"), words::message(last))
        }
    };
    let mut sides = Vec::new();
    for (id, own) in [(a, &p.first), (b, &p.second)] {
        let context = store.load_context(id)?;
        let (shown, shown_tokens) = (context.len(), words::tokens(&context));
        let compactions = own.iter().filter(|m| m.boundary).count();
        let pruned = pruned(id)?;
        let _ = writeln!(
            out,
            "\n{id}  {}\n{} of its own (~{} tokens, {}); {} pruned; the next request shows {shown} \
             (~{shown_tokens} tokens)",
            words::short(&store.session(id)?.title),
            many(own.len(), "message"),
            words::tokens(own),
            many(compactions, "compaction"),
            many(pruned, "result"),
        );
        for m in own {
            let _ = writeln!(out, "  {}", words::message(m));
        }
        sides.push(json!({
            "id": id.to_string(),
            "own": own.iter().map(words::message_json).collect::<Vec<_>>(),
            "own_tokens_estimated": words::tokens(own),
            "compactions": compactions,
            "pruned": pruned,
            "context_messages": shown,
            "context_tokens_estimated": shown_tokens,
        }));
    }
    let json = json!({
        "shared": p.shared.len(),
        "last_shared": p.shared.last().map(words::message_json),
        "sides": sides,
    });
    which.print(&out, &json)
}
