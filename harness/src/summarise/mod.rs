//! Substitutes for the model that writes summaries.
//!
//! Every strategy that summarises sends a prompt to a mock server, and this module answers it. The
//! text of a real model would differ from run to run and would cost money, so the default is
//! [`Summariser::Extractive`]: general rules that see only the decoded prompt and not the facts of
//! a scenario. [`Summariser::Ideal`] and [`Summariser::Lossy`] know them and give an upper bound,
//! exact or with stated losses. [`Summariser::Scripted`] repeats given texts, and
//! [`Summariser::Endpoint`] asks a real model once and repeats its recorded answer. All are
//! deterministic.
//!
//! The extractive one cannot see facts by construction: its input is a [`Prompt`], a decoded
//! request, which contains no facts.
//!
//! Size: `clamp(5 % of the conversation, 300, 4,400)` o200k tokens, never more than `max_tokens` has room for, see
//! [`budget`].

mod ask;
mod choose;
mod collect;
mod cues;
mod desk;
pub mod endpoint;
mod extractive;
mod ideal;
mod outputs;
mod read;
mod render;
mod script;
mod sentences;
mod tools;
mod topic;
mod transcript;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ctxbench_core::fact::Fact;
use ctxbench_core::model::Counting;
use ctxbench_core::nearest::hint;
use ctxbench_core::request::StopReason;
use ctxbench_core::session::Session;
use ctxbench_provider::Prompt;

use endpoint::Endpoint;

pub use desk::SummaryDesk;
pub use extractive::{MAX_TOKENS, budget};
pub use ideal::{DISTORT, KEEP};
pub use script::{Script, ScriptError, ScriptedText};

/// Writer of the summaries.
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
    /// Given texts, in this order; after the last one no summary can be written.
    Scripted(Script),
    /// A real model, recorded.
    Endpoint(Arc<Endpoint>),
    /// Summaries that were written before, in this order, and then those of another summariser.
    Again(Arc<[String]>, Box<Summariser>),
}

impl Summariser {
    /// The names of the command line.
    pub const NAMES: [&'static str; 4] = ["extractive", "ideal", "lossy", "scripted"];

    /// The name in reports.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Summariser::Extractive => "extractive".into(),
            Summariser::Ideal => "ideal".into(),
            Summariser::Lossy { .. } => "lossy".into(),
            Summariser::Scripted(_) => "scripted".into(),
            Summariser::Endpoint(e) => e.name().into(),
            Summariser::Again(_, then) => then.name(),
        }
    }

    /// Returns whether its text depends on the seed.
    pub fn seeded(&self) -> bool {
        match self {
            Summariser::Again(_, then) => then.seeded(),
            other => matches!(other, Summariser::Lossy { .. }),
        }
    }

    /// Returns the origin of its text, for a reader of the figures.
    pub fn origin(&self) -> String {
        match self {
            Summariser::Endpoint(_) => format!(
                "{} (a real model's recorded answers, billed as the simulated one's)",
                self.name()
            ),
            Summariser::Scripted(Script::Recorded) => {
                "scripted (the summaries of the recording)".into()
            }
            Summariser::Scripted(_) => "scripted (texts of a file)".into(),
            Summariser::Again(_, then) => then.origin(),
            _ => format!("{} (modelled)", self.name()),
        }
    }

    /// Returns it with its texts for one session and strategy, if it is scripted.
    pub fn read_for(&self, session: &Session, label: &str, strategy: &str) -> Summariser {
        match self {
            Summariser::Scripted(s) => {
                Summariser::Scripted(Script::Texts(s.texts(session, label, strategy)))
            }
            other => other.clone(),
        }
    }
}

/// Unknown name of a summariser.
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

    /// `lossy` takes the default rates [`KEEP`] and [`DISTORT`]; `scripted` the summaries of the
    /// recording.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "extractive" => Ok(Summariser::Extractive),
            "ideal" => Ok(Summariser::Ideal),
            "lossy" => Ok(Summariser::Lossy { keep: KEEP, distort: DISTORT }),
            "scripted" => Ok(Summariser::Scripted(Script::Recorded)),
            _ => Err(UnknownSummariser(name.to_string())),
        }
    }
}

/// Instruction where the provider compacts by itself: on demand, or at its own threshold.
pub(crate) const ASK: &str =
    "Summarise the conversation so that the work can go on from the summary alone.";

/// One summary to write.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The request as the server sees it.
    pub prompt: &'a Prompt,
    /// Largest reply that the request allows, tokens.
    pub max_tokens: Option<u64>,
    /// How the model that is asked counts them.
    pub counting: Counting,
    /// Facts of the scenario; only `Ideal` and `Lossy` see them.
    pub facts: &'a [Fact],
    /// Seed of the run.
    pub seed: u64,
    /// Number of earlier summaries of the run.
    pub index: u64,
}

impl Job<'_> {
    /// o200k tokens that the largest reply may have.
    fn room(&self) -> Option<u64> {
        self.max_tokens.map(|n| self.counting.fitting(n))
    }
}

/// A summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Text.
    pub text: String,
    /// Why they end.
    pub stop: StopReason,
}

/// Reason why there is no summary, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten(pub String);

/// Writes a summary.
pub fn summarise(s: &Summariser, job: &Job<'_>) -> Result<Written, Unwritten> {
    let text = match s {
        // It gets no facts: it can only keep facts that it finds itself.
        Summariser::Extractive => extractive::write(job.prompt, job.room()),
        Summariser::Ideal => ideal::write(job, None),
        Summariser::Lossy { keep, distort } => ideal::write(job, Some((*keep, *distort))),
        Summariser::Scripted(Script::Texts(texts)) => {
            let text = usize::try_from(job.index).ok().and_then(|i| texts.get(i)).cloned();
            text.ok_or_else(|| {
                Unwritten(format!(
                    "summary {} is requested, and the script has {}",
                    job.index + 1,
                    texts.len()
                ))
            })?
        }
        Summariser::Scripted(_) => {
            return Err(Unwritten("the script was not read for this session".to_string()));
        }
        Summariser::Endpoint(e) => return e.write(job),
        Summariser::Again(texts, then) => {
            match usize::try_from(job.index).ok().and_then(|i| texts.get(i)) {
                Some(text) => text.clone(),
                None => return summarise(then, job),
            }
        }
    };
    Ok(Written { text, stop: StopReason::EndTurn })
}
