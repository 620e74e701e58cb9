//! What each product lets its user bring back, for the rewind section of the report.

use ctxbench_core::session::RewindMode;

/// How a product keeps files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeWay {
    /// The former content of what edit tools change, per user prompt.
    EditTools,
    /// The whole tree in a git directory of its own, per step.
    ShadowGit,
}

/// What a product's rewind brings back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewind {
    /// The conversation goes back to a message.
    pub conversation: bool,
    /// Files go back with it or alone, and how they are kept.
    pub code: Option<CodeWay>,
    /// Summaries of one side of a message.
    pub summaries: bool,
}

impl Rewind {
    /// Whether anything of a mode can be had.
    pub fn offers(&self, mode: RewindMode) -> bool {
        match mode {
            RewindMode::Conversation => self.conversation,
            RewindMode::Code => self.code.is_some(),
            RewindMode::Both => self.conversation || self.code.is_some(),
            RewindMode::SummarizeFrom | RewindMode::SummarizeTo => self.summaries,
        }
    }
}

/// What the product behind a strategy offers, by the strategy's name.
///
/// Claude Code: code, conversation, both, and summaries of either side (facts/claude-code-and-apis.md §1.5; seeds/000). OpenCode: revert
/// takes messages and files back together (facts/opencode.md §7). Codex: turns of the conversation; its undo of files is gone in era 3
/// (facts/codex.md §1). OpenOxide: the blueprint of seeds/000 keeps files by edit tools; its summary from a point is not built here.
/// Aider's `/undo` takes a commit back and no message; libraries, APIs and controls have no rewind.
pub fn rewind_of(strategy: &str) -> Rewind {
    let none = Rewind::default();
    match strategy {
        "claude-code" => Rewind { conversation: true, code: Some(CodeWay::EditTools), summaries: true },
        "opencode" => Rewind { conversation: true, code: Some(CodeWay::ShadowGit), ..none },
        "openoxide" => Rewind { conversation: true, code: Some(CodeWay::EditTools), ..none },
        "codex" => Rewind { conversation: true, ..none },
        _ => none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_has_no_rewind_and_names_are_those_of_the_registry() {
        use ctxbench_core::descriptor::Standing;
        let with: Vec<&str> = crate::ALL.iter().map(|d| d.name).filter(|n| rewind_of(n) != Rewind::default()).collect();
        assert_eq!(with, ["codex", "opencode", "claude-code", "openoxide"]);
        assert!(crate::ALL.iter().all(|d| d.standing == Standing::Contender || rewind_of(d.name) == Rewind::default()));
    }

    #[test]
    fn both_is_offered_in_part_where_only_one_half_exists() {
        assert!(rewind_of("codex").offers(RewindMode::Both) && !rewind_of("codex").offers(RewindMode::Code));
        assert!(!rewind_of("opencode").offers(RewindMode::SummarizeFrom));
        assert!(RewindMode::ALL.iter().all(|m| rewind_of("claude-code").offers(*m) && !rewind_of("aider").offers(*m)));
    }
}
