//! Memory files that products load for a project: token counts and their presentation.

mod prefix;
mod text;

use std::path::PathBuf;

use ctxbench_core::model::Counting;
use ctxbench_core::tokens::o200k;
use ctxbench_kit::memory::{
    Activation, CutOff, LoadRequest, LoadedFiles, MemoryFile, ProjectFolders,
};
use ctxbench_strategies::Spec;
use ctxbench_strategies::descriptor::MemoryFiles;
use serde::Serialize;

pub use prefix::Prefixes;
pub use text::{product_text, side_by_side};

/// Memory files of a product with their token counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProductMemory {
    /// Strategy label.
    pub product: String,
    /// Reason why the product reads no memory files; `None` if it does.
    pub reads_none: Option<&'static str>,
    /// Loaded files in display order, followed by pending ones.
    pub files: Vec<CountedFile>,
    /// Problems and omissions.
    pub notes: Vec<String>,
    /// Totals over `files`.
    pub tokens: TokenTotals,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedFile {
    /// Path relative to the working directory, or `~/…`.
    pub path: String,
    pub level: &'static str,
    /// `start`, `touched` or `waits`.
    pub when: &'static str,
    /// Tokens of the text within the limit.
    pub tokens: u64,
    pub imported_by: Option<String>,
    /// Number of imports that lead to this file; 0 = not imported.
    pub depth: usize,
    /// Paths that the file applies to; empty = all.
    pub paths: Vec<String>,
    /// Size of the text beyond the limit.
    pub lost: Option<CutOffTokens>,
}

/// Size of the text of a file beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CutOffTokens {
    pub lines: usize,
    pub bytes: usize,
    pub tokens: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenTotals {
    /// Loaded at the start of a session and after each compaction.
    pub start: u64,
    /// Loaded because a file was touched.
    pub touched: u64,
    /// Pending until a matching file is touched.
    pub waits: u64,
    /// Beyond the limits.
    pub lost: u64,
}

/// Loads a product's memory files and counts their tokens with `counting`, or with o200k if `None`.
pub fn load_counted(
    spec: &Spec,
    folders: &ProjectFolders,
    touched: &[PathBuf],
    counting: Option<Counting>,
) -> ProductMemory {
    let count = |text: &str| {
        let n = o200k(text);
        counting.map_or(n, |c| c.text(n))
    };
    let (loaded, reads_none) = load(spec, folders, touched);
    let mut tokens = TokenTotals::default();
    let mut file = |f: &MemoryFile| {
        let lost = f.cut_off().map(|CutOff { lines, bytes }| {
            // Token counts of two parts do not add up to that of the whole text.
            let whole = count(&format!("{}{}", f.text, f.rest));
            CutOffTokens { lines, bytes, tokens: whole.saturating_sub(count(&f.text)) }
        });
        let n = count(&f.text);
        let (total, when) = match f.when {
            Activation::Start => (&mut tokens.start, "start"),
            Activation::Touched => (&mut tokens.touched, "touched"),
            Activation::Pending => (&mut tokens.waits, "waits"),
        };
        *total += n;
        tokens.lost += lost.map_or(0, |l| l.tokens);
        CountedFile {
            path: folders.short_path(&f.path),
            level: f.level.name(),
            when,
            tokens: n,
            imported_by: f.imported_by.as_deref().map(|p| folders.short_path(p)),
            depth: f.depth,
            paths: f.scope.iter().flat_map(|s| s.patterns().to_vec()).collect(),
            lost,
        }
    };
    let files = loaded.files.iter().map(&mut file).collect();
    let notes = loaded.notes.iter().map(|n| folders.shorten_paths(&n.to_string())).collect();
    let product = spec.label();
    ProductMemory { product, reads_none, files, notes, tokens }
}

fn load(
    spec: &Spec,
    folders: &ProjectFolders,
    touched: &[PathBuf],
) -> (LoadedFiles, Option<&'static str>) {
    match &spec.descriptor.files {
        MemoryFiles::None(why) => (LoadedFiles::default(), Some(*why)),
        MemoryFiles::Read { table, .. } => {
            let request = LoadRequest { table: table.clone(), folders, touched };
            (spec.descriptor.product.load_files(spec.version, request), None)
        }
    }
}
