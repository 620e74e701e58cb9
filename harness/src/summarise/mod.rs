//! Stand-ins for the model that writes summaries.
//!
//! Every strategy that summarises sends a prompt to a mock server, and this module answers it. The text of a real model would differ
//! from run to run and would cost money, so the default is [`Summariser::Extractive`]: general rules that see only the decoded prompt
//! and know nothing of the facts a scenario asks for. [`Summariser::Ideal`] and [`Summariser::Lossy`] do know them and give an upper
//! bound, exact or with stated losses. All are deterministic.
//!
//! Size: `min(max_tokens, clamp(5 % of the conversation, 300, 4,400))` o200k tokens, see [`budget`].

mod ask;
mod choose;
mod collect;
mod cues;
mod extractive;
mod ideal;
mod outputs;
mod read;
mod render;
mod sentences;
mod tools;
mod topic;
mod transcript;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use ctxbench_core::fact::Fact;
use ctxbench_core::nearest::hint;
use ctxbench_core::provider::Prompt;

pub use extractive::{MOST_TOKENS, budget};
pub use ideal::{DISTORT, KEEP};

/// Who writes the summaries.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Summariser {
    /// General rules over the prompt; blind to facts.
    #[default]
    Extractive,
    /// Every fact that the prompt shows and that fits: an upper bound.
    Ideal,
    /// Like `Ideal`, with losses by a seeded hash.
    Lossy {
        /// Probability that a visible fact is kept.
        keep: f64,
        /// Share of the kept facts that come out wrong.
        distort: f64,
    },
    /// Fixed texts in this order, the last one again and again.
    Scripted(Vec<String>),
}

impl Summariser {
    /// The names of the command line.
    pub const NAMES: [&'static str; 3] = ["extractive", "ideal", "lossy"];

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Summariser::Extractive => "extractive",
            Summariser::Ideal => "ideal",
            Summariser::Lossy { .. } => "lossy",
            Summariser::Scripted(_) => "scripted",
        }
    }
}

/// A name that is no summariser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSummariser(String);

impl fmt::Display for UnknownSummariser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown summariser '{}': {}", self.0, hint(&self.0, &Summariser::NAMES))
    }
}

impl std::error::Error for UnknownSummariser {}

impl FromStr for Summariser {
    type Err = UnknownSummariser;

    /// `lossy` takes the default rates [`KEEP`] and [`DISTORT`]; scripted texts come from recordings and have no name here.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "extractive" => Ok(Summariser::Extractive),
            "ideal" => Ok(Summariser::Ideal),
            "lossy" => Ok(Summariser::Lossy { keep: KEEP, distort: DISTORT }),
            _ => Err(UnknownSummariser(name.to_string())),
        }
    }
}

/// One summary to write.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The request as the server sees it.
    pub prompt: &'a Prompt,
    /// Largest reply that the request allows, tokens.
    pub max_tokens: Option<u64>,
    /// What the scenario asks for; seen by `Ideal` and `Lossy` alone.
    pub facts: &'a [Fact],
    /// Seed of the run.
    pub seed: u64,
    /// How many summaries the run had before.
    pub index: u64,
}

/// Writes a summary.
pub fn summarise(s: &Summariser, job: &Job<'_>) -> String {
    match s {
        // The facts are not handed over: what this one keeps it found by itself.
        Summariser::Extractive => extractive::write(job.prompt, job.max_tokens),
        Summariser::Ideal => ideal::write(job, None),
        Summariser::Lossy { keep, distort } => ideal::write(job, Some((*keep, *distort))),
        Summariser::Scripted(texts) => {
            let last = texts.len().saturating_sub(1);
            texts.get(usize::try_from(job.index).unwrap_or(last).min(last)).cloned().unwrap_or_default()
        }
    }
}
