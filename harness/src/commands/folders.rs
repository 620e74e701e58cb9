//! Folders in which agents keep their sessions.

use std::path::{Path, PathBuf};

/// Folder for the data of desktop programs on one system, with the variable that names it.
const DESKTOP: &str = "desktop";
const DESKTOPS: [[&str; 2]; 3] = [
    ["XDG_CONFIG_HOME", ".config"],
    ["", "Library/Application Support"],
    ["APPDATA", "AppData/Roaming"],
];

/// Agent, variable of its folder (or [`DESKTOP`]), default of that below the home folder, and the
/// sessions in it, where `*` in a name is any text. A database replaces the other places of an agent,
/// whose newer versions use it instead. Crush and Aider keep sessions in each project.
const FOLDERS: [[&str; 4]; 31] = [
    ["claude-code", "CLAUDE_CONFIG_DIR", ".claude", "projects"],
    ["codex", "CODEX_HOME", ".codex", "sessions"],
    ["opencode", "XDG_DATA_HOME", ".local/share", "opencode/opencode.db"],
    ["opencode", "XDG_DATA_HOME", ".local/share", "opencode/storage"],
    ["pi", "PI_CODING_AGENT_DIR", ".pi/agent", "sessions"],
    ["gemini-cli", "GEMINI_CLI_HOME", "", ".gemini/tmp"],
    ["copilot-cli", "COPILOT_HOME", ".copilot", "session-state"],
    ["copilot-vscode", DESKTOP, "", "Code*/User/workspaceStorage/*/chatSessions"],
    ["copilot-vscode", DESKTOP, "", "Code*/User/globalStorage/emptyWindowChatSessions"],
    ["cursor", DESKTOP, "", "Cursor/User/globalStorage/state.vscdb"],
    ["cursor", "", ".cursor", "projects/*/agent-transcripts"],
    ["cline", DESKTOP, "", "Code*/User/globalStorage/saoudrizwan.claude-dev/tasks"],
    ["cline", "", ".cline/data", "tasks"],
    ["cline", "CLINE_SESSION_DATA_DIR", ".cline/data/sessions", ""],
    ["roo-code", DESKTOP, "", "Code*/User/globalStorage/rooveterinaryinc.roo-cline/tasks"],
    ["kilo-code", "XDG_DATA_HOME", ".local/share", "kilo/kilo.db"],
    ["kilo-code", DESKTOP, "", "Code*/User/globalStorage/kilocode.kilo-code/tasks"],
    ["qwen-code", "QWEN_HOME", ".qwen", "projects"],
    ["qwen-code", "QWEN_HOME", ".qwen", "tmp"],
    ["openclaw", "", ".openclaw", "agents/*/agent/openclaw-agent.sqlite"],
    ["openclaw", "", ".openclaw", "agents/*/sessions"],
    ["kimi-code", "KIMI_CODE_HOME", ".kimi-code", "sessions"],
    ["kimi-cli", "", ".kimi", "sessions"],
    ["goose", "XDG_DATA_HOME", ".local/share", "goose/sessions/sessions.db"],
    ["goose", "APPDATA", "AppData/Roaming", "Block/goose/data/sessions/sessions.db"],
    ["goose", "XDG_DATA_HOME", ".local/share", "goose/sessions"],
    ["droid", "", ".factory", "sessions"],
    ["amp", "AMP_DATA_DIR", ".local/share/amp", "threads"],
    ["zed", "XDG_DATA_HOME", ".local/share", "zed/threads/threads.db"],
    ["zed", "", "Library/Application Support", "Zed/threads/threads.db"],
    ["zed", "LOCALAPPDATA", "AppData/Local", "Zed/threads/threads.db"],
];

/// Returns the places of this user, each with its agent.
pub(super) fn places() -> Vec<(&'static str, PathBuf)> {
    let home = std::env::home_dir().unwrap_or_default();
    let mut places = Vec::new();
    for [agent, name, default, below] in FOLDERS {
        let own = [[name, default]];
        for [name, default] in if name == DESKTOP { &DESKTOPS[..] } else { &own } {
            let given = std::env::var_os(name).filter(|value| !value.is_empty());
            let base = given.map_or_else(|| home.join(default), PathBuf::from);
            places.push((agent, base.join(below)));
        }
    }
    places
}

/// Returns the places that exist, each with its agent.
pub(super) fn found() -> Vec<(&'static str, PathBuf)> {
    let of = |(agent, place): (_, PathBuf)| matching(&place).into_iter().map(move |p| (agent, p));
    let mut found: Vec<(&str, PathBuf)> = places().into_iter().flat_map(of).collect();
    let is_database = |(_, path): &&(&str, PathBuf)| path.is_file();
    let databases: Vec<&str> = found.iter().filter(is_database).map(|(agent, _)| *agent).collect();
    found.retain(|(agent, path)| path.is_file() || !databases.contains(agent));
    found
}

/// Returns the names of all agents, in the order of the table.
pub(super) fn agents() -> Vec<&'static str> {
    let mut names = FOLDERS.map(|[agent, ..]| agent).to_vec();
    names.dedup();
    names
}

/// Returns the existing paths that match a pattern, sorted.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        let Some((begin, end)) = name.split_once('*') else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        let children = |dir: &PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut next: Vec<PathBuf> = found.iter().flat_map(children).map(|c| c.path()).collect();
        next.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(begin) && name.ends_with(end)
        });
        next.sort();
        found = next;
    }
    found.retain(|path| path.exists());
    found
}
