//! What products read of a project before the first message: counted, and as text.

mod prefix;
mod text;

use ctxbench_core::model::Counting;
use ctxbench_core::tokens::o200k;
use ctxbench_kit::memory::{Loaded, Lost, MemoryFile, Visit, When};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::MemoryFiles;
use serde::Serialize;

pub use prefix::Prefixes;
pub use text::{one, side_by_side};

/// The memory files of one product.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counted {
    /// Name, with a version where it is not the plain one.
    pub product: String,
    /// Why it reads none; `None` = it reads some.
    pub reads_none: Option<&'static str>,
    /// In the order in which they are shown, then those that wait.
    pub files: Vec<File>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// Sums over `files`.
    pub tokens: Sums,
}

/// A memory file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct File {
    /// From the project folder or from home.
    pub path: String,
    pub level: &'static str,
    /// `start`, `touched` or `waits`.
    pub when: &'static str,
    /// Of what is shown of it, or would be.
    pub tokens: u64,
    /// The file that imports it.
    pub imported_by: Option<String>,
    /// Imports between it and a file that nobody imports.
    pub depth: usize,
    /// The paths that it holds for; empty = all.
    pub paths: Vec<String>,
    /// What is cut off.
    pub lost: Option<LostTokens>,
}

/// What is cut off a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LostTokens {
    pub lines: usize,
    pub bytes: usize,
    pub tokens: u64,
}

/// Tokens of all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    /// At the start of a session, and after each compaction.
    pub start: u64,
    /// That came with a file.
    pub touched: u64,
    /// That wait for one.
    pub waits: u64,
    /// Cut off.
    pub lost: u64,
}

/// What a product reads, counted by `counting`, or by o200k alone.
pub fn counted(spec: &Spec, visit: &Visit<'_>, counting: Option<Counting>) -> Counted {
    let count = |text: &str| {
        let n = o200k(text);
        counting.map_or(n, |c| c.text(n))
    };
    let (loaded, reads_none) = load(spec, visit);
    let site = visit.site;
    let mut tokens = Sums::default();
    let mut file = |f: &MemoryFile| {
        let lost = f.lost().map(|Lost { lines, bytes }| {
            // Tokens of both parts are not those of the whole.
            let whole = count(&format!("{}{}", f.text, f.rest));
            LostTokens { lines, bytes, tokens: whole.saturating_sub(count(&f.text)) }
        });
        let n = count(&f.text);
        let when = match f.when {
            When::Start => (&mut tokens.start, "start"),
            When::Touched => (&mut tokens.touched, "touched"),
            When::Waits => (&mut tokens.waits, "waits"),
        };
        *when.0 += n;
        tokens.lost += lost.map_or(0, |l| l.tokens);
        File {
            path: site.short(&f.path),
            level: f.level.name(),
            when: when.1,
            tokens: n,
            imported_by: f.imported_by.as_deref().map(|p| site.short(p)),
            depth: f.depth,
            paths: f.scope.iter().flat_map(|s| s.patterns().to_vec()).collect(),
            lost,
        }
    };
    let files = loaded.files.iter().map(&mut file).collect();
    let notes = loaded.notes.iter().map(|n| site.shorten(&n.to_string())).collect();
    let product = spec.label();
    Counted { product, reads_none, files, notes, tokens }
}

fn load(spec: &Spec, visit: &Visit<'_>) -> (Loaded, Option<&'static str>) {
    match spec.descriptor.files {
        MemoryFiles::None(why) => (Loaded::default(), Some(why)),
        MemoryFiles::Read { load, .. } => (load(spec.version, visit), None),
    }
}
