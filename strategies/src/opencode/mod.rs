//! OpenCode: a summary after a marker message replaces the head of the session; the newest steps
//! stay.
//!
//! `rules.rs` and `strategy.rs` follow the releases; `described.rs` follows two published accounts.

mod conform;
mod described;
mod files;
#[cfg(test)]
mod hook_tests;
pub(crate) mod log;
pub(crate) mod persist;
pub(crate) mod persist_files;
pub(crate) mod persist_tables;
mod record;
#[cfg(test)]
mod recorded_tests;
mod rules;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Reads,
    Rewind, SnapshotKind, Standing, Version,
};
use described::{Account, DescribedOpenCode};
use settings::OpenCodeSettings;
use strategy::OpenCodeProgram;
use words::OpenCodeWords;

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "opencode",
    summary: "OpenCode: summary of the head behind a marker, newest steps verbatim; optional \
        pruning of old tool results",
    sources: &["docs/sources/opencode.md: released programs 1.18.33 and 1.3.2 read and observed"],
    matrix: Matrix {
        layers: "2: clear old tool results (off by default), summary with a verbatim tail",
        llm_calls: "1 per compaction",
        user_messages: "in the summary, except those in the tail; repeated after a provider \
            overflow",
        tool_results: "tail verbatim; cut to 2,000 characters for the summariser; clearing keeps \
            the call",
        cache: "summary request has its own system prompt, so it reads nothing; the prefix is \
            rewritten after it",
        afterwards: "a synthetic message asks the model to continue",
        token_counting: "usage reported by the provider; UTF-16 length / 4 for pruning and tail",
        pre_send_check: "none: only after a step, by reported usage",
        overflow_response: "compacts without the last user message and repeats it",
        thinking: "kept in the tail, written into the transcript",
        memory: "AGENTS.md / CLAUDE.md in the system prompt",
        undo: "everything stays in the store; reverting past a compaction undoes it",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Plain,
    // A revert restores messages and files together (docs/sources/opencode.md §7).
    rewind: Rewind { conversation: true, code: Some(SnapshotKind::ShadowGit), summaries: false },
    formats: &[persist_tables::FORMAT, persist_files::FORMAT],
    conform: conform::CONFORMANCE,
    color: PlotColor::Palette(2),
    files: MemoryFiles::Read { load: files::load, follows: false },
    settings_file: Some(files::SETTINGS),
    page: "docs/systems/opencode.md",
    factory: Factory::of::<OpenCode>(),
};

pub(crate) struct OpenCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenCodeVersion {
    V1_18,
    V1_3,
    Described(Account),
}

impl Product for OpenCode {
    type Version = OpenCodeVersion;
    type Settings = OpenCodeSettings;
    type Words = OpenCodeWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[
        (Version::released("1.18"), OpenCodeVersion::V1_18),
        (
            // No verbatim tail, and no plugin decides about continuing.
            Version::released("1.3").reading(Reads::AllBut(&[
                "autocontinue",
                "tail_turns",
                "preserve_recent_tokens",
                "tail_least",
                "tail_most",
                "model_input",
            ])),
            OpenCodeVersion::V1_3,
        ),
        (
            Version::described(
                "described-001",
                "published description (docs/sources/opencode-vs-claude-code.md §2 and §7): \
                 everything summarised by a plain prompt beyond the window less the reply, judged \
                 before the next request; no tail, no message afterwards, pruning on, no tool \
                 exempt. In fact (1.18) pruning is off and a tail stays verbatim",
                Reads::Only(&["auto", "prune", "prune_protect", "prune_minimum", "prompt"]),
            ),
            OpenCodeVersion::Described(Account::Comparison),
        ),
        (
            Version::described(
                "described-002",
                "published description (docs/sources/login-bug.md §4): old results vanish with \
                 their calls, then a summary under five headings and always the last user message \
                 again. In fact (1.18) pruning is off and leaves placeholders, and only a refused \
                 prompt is repeated",
                Reads::Only(&[
                    "auto",
                    "prune",
                    "prune_protect",
                    "prune_minimum",
                    "prompt",
                    "reserved",
                ]),
            ),
            OpenCodeVersion::Described(Account::Article),
        ),
    ];

    fn build(b: Build<OpenCode>) -> Box<dyn Strategy> {
        let (s, words, scale) = (b.settings, b.words, b.scale);
        match b.version {
            OpenCodeVersion::V1_18 => Box::new(OpenCodeProgram::new(false, s, words, scale)),
            OpenCodeVersion::V1_3 => Box::new(OpenCodeProgram::new(true, s, words, scale)),
            OpenCodeVersion::Described(account) => {
                Box::new(DescribedOpenCode::new(account, s, words, scale))
            }
        }
    }
}
