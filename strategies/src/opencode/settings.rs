//! Settings of OpenCode.

use ctxbench_core::prelude::*;
use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenCodeSettings {
    pub(crate) auto: bool,
    pub(crate) prune: Option<bool>,
    pub(crate) prune_protect: u64,
    pub(crate) prune_minimum: u64,
    pub(crate) count: Count,
    pub(crate) reserved: Option<u64>,
    pub(crate) tail_turns: Option<u64>,
    pub(crate) preserve_recent_tokens: Option<u64>,
    pub(crate) tail_least: u64,
    pub(crate) tail_most: u64,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) model_context: Option<u64>,
    pub(crate) model_output: Option<u64>,
    pub(crate) model_input: Option<u64>,
    pub(crate) hook_context: Option<Arc<str>>,
    pub(crate) hook_prompt: Option<Arc<str>>,
    pub(crate) autocontinue: bool,
    pub(crate) proactive: Option<f64>,
    pub(crate) prompt: Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Count {
    Characters,
    Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Prompt {
    Own,
    Sdk,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenCodeWords {
    pub(crate) summary_system: Arc<str>,
    pub(crate) intro: Arc<str>,
    pub(crate) first: Arc<str>,
    pub(crate) prior_open: Arc<str>,
    pub(crate) prior_close: Arc<str>,
    pub(crate) template: Arc<str>,
    pub(crate) hook_history: Arc<str>,
    pub(crate) old_prompt: Arc<str>,
    pub(crate) wrapper_open: Arc<str>,
    pub(crate) wrapper_close: Arc<str>,
    pub(crate) marker: Arc<str>,
    pub(crate) go_on: Arc<str>,
    pub(crate) go_on_overflow: Arc<str>,
    pub(crate) template_sdk: Arc<str>,
    pub(crate) plain_prompt: Arc<str>,
}

impl OpenCodeWords {
    /// Selects the headings: the program's own, or the five sections of
    /// docs/sources/opencode-vs-claude-code.md §8.
    pub(crate) fn headed(self, prompt: Prompt) -> Self {
        match prompt {
            Prompt::Own => self,
            Prompt::Sdk => OpenCodeWords {
                template: self.template_sdk.clone(),
                old_prompt: self.template_sdk.clone(),
                plain_prompt: self.template_sdk.clone(),
                ..self
            },
        }
    }

    /// Applies a plugin's additions to, or replacement of, the prompt (docs/sources/opencode.md
    /// §3.2.5).
    pub(crate) fn hooked(self, s: &OpenCodeSettings) -> Self {
        let with = |words: &Arc<str>| match (&s.hook_prompt, &s.hook_context) {
            (Some(prompt), _) => prompt.clone(),
            (None, Some(context)) => format!("{words}\n\n{context}").into(),
            (None, None) => words.clone(),
        };
        OpenCodeWords { template: with(&self.template), old_prompt: with(&self.old_prompt), ..self }
    }

    /// Builds the summary request of a plugin with its own prompt. The conversation follows the
    /// prompt; the previous summary is not included.
    pub(crate) fn prompt_of_plugin(&self, transcript: &Transcript) -> Transcript {
        let mut out = Transcript::default();
        out.instruct(&self.template);
        out.instruct(&self.hook_history);
        out.append(transcript);
        out
    }

    /// Builds the summary request around a transcript and the previous summary
    /// (docs/sources/opencode.md §3.2.7).
    pub(crate) fn prompt(&self, transcript: &Transcript, prior: Option<&str>) -> Transcript {
        let mut out = Transcript::default();
        out.instruct(&self.intro);
        out.append(transcript);
        match prior {
            None => out.instruct(&self.first),
            Some(p) => {
                out.instruct(&self.prior_open);
                out.recall(&Transcript::quoted(BlockKind::Summary, p));
                out.instruct(&self.prior_close);
            }
        }
        out.instruct(&self.template);
        out
    }
}
