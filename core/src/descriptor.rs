//! What a strategy says of itself: name, version, sources, settings, and the answers for the comparison matrix.

use crate::provider::Model;
use crate::settings::{Setting, Settings};
use crate::strategy::Strategy;
use crate::wording::Wording;

/// Answers to the comparison dimensions, a short phrase each.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// How many layers of compaction, and which.
    pub layers: &'static str,
    /// When a model is called for it.
    pub llm_calls: &'static str,
    /// What happens to user messages.
    pub user_messages: &'static str,
    /// What happens to tool results.
    pub tool_results: &'static str,
    /// What it does for, or to, the prompt cache.
    pub cache: &'static str,
    /// What follows a compaction.
    pub afterwards: &'static str,
    /// How it counts tokens.
    pub token_counting: &'static str,
    /// What it checks before sending.
    pub pre_send_check: &'static str,
    /// What it does when the provider refuses a prompt.
    pub overflow_response: &'static str,
    /// What happens to reasoning.
    pub thinking: &'static str,
    /// What it remembers across sessions.
    pub memory: &'static str,
    /// What can be undone.
    pub undo: &'static str,
}

impl Matrix {
    /// Dimension names and answers, in report order.
    pub fn rows(&self) -> [(&'static str, &'static str); 12] {
        [
            ("Compaction layers", self.layers),
            ("LLM calls", self.llm_calls),
            ("User messages", self.user_messages),
            ("Tool results", self.tool_results),
            ("Prompt cache", self.cache),
            ("Afterwards", self.afterwards),
            ("Token counting", self.token_counting),
            ("Check before sending", self.pre_send_check),
            ("Overflow response", self.overflow_response),
            ("Thinking", self.thinking),
            ("Memory", self.memory),
            ("Undo", self.undo),
        ]
    }
}

/// What a strategy is built from.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// Version, one of the descriptor's.
    pub version: &'a str,
    /// Settings, scale applied.
    pub settings: &'a Settings,
    /// Prompt texts.
    pub wording: &'a Wording,
    /// Multiplier of token constants that are not settings.
    pub scale: f64,
}

/// Builds a strategy.
pub type Builder = fn(&Build<'_>) -> Box<dyn Strategy>;

/// Why a version with these settings cannot exist with a model; `None` = it can. Such a pair is a row that reads `n/a`.
pub type Unfit = fn(version: &str, settings: &Settings, model: &Model) -> Option<&'static str>;

/// For strategies that ask nothing of a model.
pub fn fits_any(_version: &str, _settings: &Settings, _model: &Model) -> Option<&'static str> {
    None
}

/// What kind of row a strategy makes in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A product, or a technique that products use.
    Contender,
    /// A yardstick that shows one end of the scale.
    Control,
    /// Cannot exist in reality.
    Hypothetical,
}

/// Where history survives outside the context, so that the product itself could bring back what the context lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// A full log of every message and result.
    Log,
    /// A chat history in Markdown: user messages and replies, with what is damaged when they are read back; no tool output.
    Markdown,
    /// Nowhere.
    Nothing,
}

/// What a strategy says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Versions it can follow, the plain name's first; `name@version` selects another.
    pub versions: &'static [&'static str],
    /// Where its behaviour is taken from.
    pub sources: &'static [&'static str],
    /// Settings with defaults and sources.
    pub settings: &'static [Setting],
    /// Comparison answers.
    pub matrix: Matrix,
    /// Prompt texts by name.
    pub wording: &'static [(&'static str, &'static str)],
    /// Control, contender or hypothetical.
    pub standing: Standing,
    /// Whether the product has a manual compaction.
    pub manual: bool,
    /// Where history survives outside the context.
    pub recovery: Recovery,
    /// Models that it cannot work with.
    pub unfit: Unfit,
    /// Builds it.
    pub build: Builder,
}
