//! Substitutes for the model that writes summaries.
//!
//! Every strategy that summarises sends a prompt to a mock server, and this module answers it. The
//! text of a real model would differ from run to run and would cost money. The default is therefore
//! [`Summariser::Extractive`]: a ranker of sentences that sees only the decoded prompt and not the facts
//! of a scenario. [`Summariser::Ideal`] and [`Summariser::Lossy`] use the facts and give an upper
//! bound, exact or with given losses. [`Summariser::Scripted`] repeats those of the recording, and
//! [`Summariser::Endpoint`] asks a real model once and repeats its recorded answer. All are
//! deterministic.
//!
//! The extractive summariser cannot use facts, because its input is a [`Prompt`], a decoded request
//! without facts.
//!
//! An extractive summary has `clamp(5 % of the conversation, 300, 4,400)` o200k tokens, see [`budget`];
//! none has more than `max_tokens`.

mod desk;
pub mod endpoint;
mod extractive;
mod headings;
mod ideal;
mod request;
mod sentences;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use ctxbench_core::model::Counting;
use ctxbench_core::request::StopReason;
use ctxbench_provider::Prompt;
use ctxbench_session::fact::Fact;
use ctxbench_session::{Entry, Session};
use ctxbench_util::nearest::hint;

use endpoint::Endpoint;

pub use desk::SummaryDesk;
pub use extractive::{MAX_TOKENS, budget};
pub use ideal::{DISTORT, KEEP};
pub use request::unread;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Summariser {
    /// Sentences of the prompt with the highest weight, without access to the facts.
    #[default]
    Extractive,
    /// Every fact in the prompt that fits: an upper bound.
    Ideal,
    /// Like `Ideal`, but loses facts by a seeded hash.
    Lossy {
        /// Probability that a visible fact is kept.
        keep: f64,
        /// Share of the kept facts that are distorted.
        distort: f64,
    },
    /// The summaries of the recording, which [`Summariser::read_for`] reads. After the last one, no
    /// summary can be written.
    Scripted,
    /// A real model with recorded answers.
    Endpoint(Arc<Endpoint>),
    /// Known texts in this order, followed by those of another summariser.
    Again(Arc<[String]>, Box<Summariser>),
}

impl Summariser {
    pub const NAMES: [&'static str; 4] = ["extractive", "ideal", "lossy", "scripted"];

    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Summariser::Extractive => "extractive".into(),
            Summariser::Ideal => "ideal".into(),
            Summariser::Lossy { .. } => "lossy".into(),
            Summariser::Scripted => "scripted".into(),
            Summariser::Endpoint(e) => e.name().into(),
            Summariser::Again(_, then) => then.name(),
        }
    }

    pub fn seeded(&self) -> bool {
        match self {
            Summariser::Again(_, then) => then.seeded(),
            other => matches!(other, Summariser::Lossy { .. }),
        }
    }

    /// Returns a description of the text's origin for reports.
    pub fn origin(&self) -> String {
        match self {
            Summariser::Endpoint(_) => format!(
                "{} (a real model's recorded answers, billed as the simulated one's)",
                self.name()
            ),
            Summariser::Scripted => "scripted (the summaries of the recording)".into(),
            Summariser::Again(_, then) => then.origin(),
            _ => format!("{} (modelled)", self.name()),
        }
    }

    /// Resolves a scripted summariser to the summaries of a session. Returns others unchanged.
    pub fn read_for(&self, session: &Session) -> Summariser {
        let recorded = |e: &Entry| match e {
            Entry::RecordedCompaction(c) => c.summary.clone(),
            _ => None,
        };
        match self {
            Summariser::Scripted => {
                let texts = session.entries.iter().filter_map(recorded).collect();
                Summariser::Again(texts, Box::new(self.clone()))
            }
            other => other.clone(),
        }
    }
}

/// Reason why a summariser cannot be used, as a message for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetUpError(String);

impl FromStr for Summariser {
    type Err = SetUpError;

    /// Parses a name. `lossy` uses the default rates [`KEEP`] and [`DISTORT`], and `scripted` the
    /// summaries of the recording.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "extractive" => Ok(Summariser::Extractive),
            "ideal" => Ok(Summariser::Ideal),
            "lossy" => Ok(Summariser::Lossy { keep: KEEP, distort: DISTORT }),
            "scripted" => Ok(Summariser::Scripted),
            _ => {
                let hint = hint(name, &Summariser::NAMES);
                Err(SetUpError(format!("unknown summariser '{name}': {hint}")))
            }
        }
    }
}

/// Instruction for a compaction by the provider itself, on demand or at its own threshold.
pub(crate) const ASK: &str =
    "Summarise the conversation so that the work can go on from the summary alone.";

#[derive(Clone, Copy, Debug)]
pub struct SummaryJob<'a> {
    pub prompt: &'a Prompt,
    pub counting: Counting,
    /// Facts of the scenario, used only by `Ideal` and `Lossy`.
    pub facts: &'a [Fact],
    pub seed: u64,
    /// Number of earlier summaries of the run.
    pub index: u64,
}

impl SummaryJob<'_> {
    /// Returns the size of the largest reply in o200k tokens.
    fn room(&self) -> Option<u64> {
        self.prompt.max_tokens.map(|n| self.counting.fitting(n))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    pub stop: StopReason,
}

/// Reason for a missing summary, as a message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten(pub String);

/// Writes a summary, or returns the reason why there is none.
pub fn summarise(s: &Summariser, job: &SummaryJob<'_>) -> Result<Summary, Unwritten> {
    let reads = matches!(s, Summariser::Extractive | Summariser::Ideal | Summariser::Lossy { .. });
    if let Some(why) = unread(job.prompt).filter(|_| reads) {
        return Err(Unwritten(why));
    }
    let text = match s {
        // It has no access to the facts and can only keep those that it finds itself.
        Summariser::Extractive => extractive::write(job.prompt, job.room()),
        Summariser::Ideal => ideal::write(job, None),
        Summariser::Lossy { keep, distort } => ideal::write(job, Some((*keep, *distort))),
        // Its texts have been written.
        Summariser::Scripted => {
            let (next, texts) = (job.index + 1, job.index);
            let why = format!("summary {next} is requested, and the script has {texts}");
            return Err(Unwritten(why));
        }
        Summariser::Endpoint(e) => return e.write(job),
        Summariser::Again(texts, then) => {
            match usize::try_from(job.index).ok().and_then(|i| texts.get(i)) {
                Some(text) => text.clone(),
                None => return summarise(then, job),
            }
        }
    };
    Ok(Summary { text, stop: StopReason::EndTurn })
}
