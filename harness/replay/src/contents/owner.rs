//! Whose content a call and its result are: a tool's, an MCP server's, a skill's or a subagent's.

use ctxbench_core::compaction::tools::{file_path, folded, text_argument};
use ctxbench_core::content::ToolCall;
use ctxbench_reports::contents::ContentKind;

/// Owner of the content of a call, and the file that it reads or edits.
pub(super) fn owner(call: &ToolCall) -> (ContentKind, String, Option<String>) {
    let argument = |names: &[&str]| text_argument(&call.arguments, names);
    let own = || call.name.to_string();
    let (kind, name) = match folded(&call.name).as_str() {
        _ if call.name.contains("__") => (ContentKind::McpServer, server(&call.name).to_string()),
        "skill" | "useskill" | "activateskill" => {
            (ContentKind::Skill, argument(&["skill", "name", "command"]).unwrap_or_else(own))
        }
        "task" | "agent" | "spawnagent" | "newtask" | "delegatetask" => {
            let names = ["subagent_type", "agent_type", "agent", "mode", "description"];
            (ContentKind::Subagent, argument(&names).unwrap_or_else(own))
        }
        _ => (ContentKind::Tool, own()),
    };
    (kind, name, file_path(&call.name, &call.arguments))
}

/// Returns the server of a tool such as `mcp__github__list_issues`.
pub(super) fn server(tool: &str) -> &str {
    let tool = tool.strip_prefix("mcp__").unwrap_or(tool);
    tool.split("__").next().unwrap_or(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_owners() {
        for (name, arguments, kind, owned_by, file) in [
            ("Read", r#"{"file_path":"/w/a"}"#, ContentKind::Tool, "Read", Some("/w/a")),
            ("mcp__git_hub__list_all", "{}", ContentKind::McpServer, "git_hub", None),
            ("Task", r#"{"subagent_type":"Explore"}"#, ContentKind::Subagent, "Explore", None),
            ("Skill", r#"{"skill":"pdf"}"#, ContentKind::Skill, "pdf", None),
            ("bash", "not JSON", ContentKind::Tool, "bash", None),
        ] {
            let (found, by, path) = owner(&ToolCall::new("c", name, arguments));
            assert_eq!((found, &*by, path.as_deref()), (kind, owned_by, file));
        }
    }
}
