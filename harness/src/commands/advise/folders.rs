//! Folders in which agents keep their sessions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::bail;

/// Agent, variable of its folder, default of that below the home folder, and the sessions in it. Of
/// an agent, the first that exists counts: OpenCode's database replaced its files.
const FOLDERS: [[&str; 4]; 6] = [
    ["claude-code", "CLAUDE_CONFIG_DIR", ".claude", "projects"],
    ["codex", "CODEX_HOME", ".codex", "sessions"],
    ["opencode", "XDG_DATA_HOME", ".local/share", "opencode/opencode.db"],
    ["opencode", "XDG_DATA_HOME", ".local/share", "opencode/storage"],
    ["pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"],
    ["gemini-cli", "GEMINI_CLI_HOME", "", ".gemini/tmp"],
];

/// Returns the session folders of these agents. `variable` looks up an environment variable. Fails
/// with the searched places if there is none.
pub(super) fn find(
    agents: &[&str],
    home: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut searched = String::new();
    let mut found: BTreeMap<&str, PathBuf> = BTreeMap::new();
    for [agent, name, default, below] in FOLDERS.into_iter().filter(|f| agents.contains(&f[0])) {
        let given = variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = given.unwrap_or_else(|| home.join(default)).join(below);
        searched += &format!("\n  {agent:<12} {}", path.display());
        if path.exists() {
            found.entry(agent).or_insert(path);
        }
    }
    if found.is_empty() {
        bail!(
            "no sessions found; searched for those of{searched}\nGive a file or a folder: ctxbench \
             advise ~/.claude/projects"
        );
    }
    Ok(found.into_values().collect())
}
