//! Settings of Claude Code. Grades in the sources: A documented, B measured, C reported.

use ctxbench_core::prelude::*;
use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaudeCodeSettings {
    pub(crate) auto: bool,
    pub(crate) auto_compact_window: Option<u64>,
    pub(crate) output_reserve: u64,
    pub(crate) buffer: u64,
    pub(crate) threshold_percent: u64,
    pub(crate) warning_distance: u64,
    pub(crate) blocking_buffer: u64,
    pub(crate) microcompact: Micro,
    pub(crate) micro_keep: u64,
    pub(crate) micro_minimum: u64,
    pub(crate) micro_gap_ms: u64,
    pub(crate) micro_gap_keep: u64,
    pub(crate) output_chars: u64,
    pub(crate) shell_chars: u64,
    pub(crate) search_chars: u64,
    pub(crate) results_chars: u64,
    pub(crate) summary_max_tokens: u64,
    pub(crate) restore_files: u64,
    pub(crate) restore_file_tokens: u64,
    pub(crate) restore_total_tokens: u64,
    pub(crate) restore_skill_tokens: u64,
    pub(crate) restore_skills_tokens: u64,
    pub(crate) restore_plan: bool,
    pub(crate) scoped_rules: bool,
    pub(crate) keep_messages: u64,
    pub(crate) session_memory: bool,
    pub(crate) memory_start_tokens: u64,
    pub(crate) memory_growth_tokens: u64,
    pub(crate) memory_keep_tokens: u64,
    pub(crate) memory_keep_texts: u64,
    pub(crate) memory_keep_most_tokens: u64,
    pub(crate) max_failures: u64,
    pub(crate) max_refills: u64,
    pub(crate) overflow_retries: u64,
    pub(crate) trim: Trim,
    pub(crate) hook_before: Option<Arc<str>>,
    pub(crate) hook_blocks: HookBlocks,
    pub(crate) hook_after: Option<Arc<str>>,
    pub(crate) idle_compaction: bool,
    pub(crate) idle_min_tokens: u64,
    pub(crate) idle_share: f64,
    pub(crate) resume: Resume,
    pub(crate) resume_idle_ms: u64,
    pub(crate) resume_min_tokens: u64,
    pub(crate) resume_keep_messages: u64,
    pub(crate) trigger: Trigger,
    pub(crate) cache_ttl: CacheTtl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Micro {
    /// Nothing: tokens go by compaction alone.
    Off,
    /// Above the warning level, if it saves enough.
    Count,
    /// After a pause that outlasts the cache.
    Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trim {
    /// The oldest groups, which the summary replaces unread.
    Oldest,
    /// The newest groups; the cached prefix stays, and these groups stay in the view after
    /// the summary.
    Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HookBlocks {
    Nothing,
    /// Those that the user asks for.
    #[serde(rename = "manual")]
    ManualCompaction,
    /// Those that come by themselves.
    #[serde(rename = "automatic")]
    Auto,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Resume {
    Full,
    /// A summary of it and the newest exchanges.
    Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trigger {
    Threshold,
    Limit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CacheTtl {
    Auto,
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    OneHour,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaudeCodeWords {
    pub(crate) summary_prompt: Arc<str>,
    pub(crate) lead_in: Arc<str>,
    pub(crate) go_on: Arc<str>,
    pub(crate) cleared: Arc<str>,
    pub(crate) left_out: Arc<str>,
    pub(crate) memory_prompt: Arc<str>,
    pub(crate) memory_so_far: Arc<str>,
    pub(crate) notes_lead_in: Arc<str>,
    pub(crate) wu2_prompt: Arc<str>,
    pub(crate) cut: Arc<str>,
}

impl ClaudeCodeSettings {
    /// Returns whether a hook blocks a compaction: a manual one (`by_hand`) or an automatic one.
    pub fn blocks_compaction(&self, by_hand: bool) -> bool {
        match self.hook_blocks {
            HookBlocks::Nothing => false,
            HookBlocks::ManualCompaction => by_hand,
            HookBlocks::Auto => !by_hand,
            HookBlocks::Both => true,
        }
    }

    /// Joins the additions to the summary's instruction: the user's, then the hook's.
    pub fn instructions(&self, user: Option<&str>) -> Option<String> {
        let said: Vec<&str> = user.into_iter().chain(self.hook_before.as_deref()).collect();
        (!said.is_empty()).then(|| said.join("\n\n"))
    }

    /// Returns the hook's text to show after the summary and the restored blocks.
    pub fn hook_block(&self, s: &mut Engine) -> Option<Arc<Block>> {
        let text = self.hook_after.clone()?;
        Some(s.synthetic(BlockKind::Marker, Role::User, text, Vec::new()))
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
