//! `--settings FILE`: settings files of products apply to their strategies.

use crate::common::CommandFolder;

const JSONC: &str = include_str!("../../../tests/data/settings/opencode.jsonc");
const TOML: &str = include_str!("../../../tests/data/settings/config.toml");

/// Labels of the rows, in order.
fn rows(here: &CommandFolder, options: &str) -> Vec<String> {
    here.run(&format!("run login-bug {options} --transport direct --out out")).ok();
    here.column("out", "strategy")
}

#[test]
fn comments_and_commas_at_the_end_are_read() {
    let here = CommandFolder::with("opencode.jsonc", JSONC);
    let all =
        "auto=true,model=claude-haiku-4-5,preserve_recent_tokens=3000,prune=true,tail_turns=1";
    let options = "--strategy opencode --strategy codex --settings opencode.jsonc";
    assert_eq!(rows(&here, options), ["codex".to_string(), format!("opencode:{all}")]);
    // The command line has priority, and a version only uses the settings that it reads.
    let options = "--strategy opencode@1.3:prune=false --settings opencode.jsonc";
    let old = "opencode@1.3:auto=true,model=claude-haiku-4-5,prune=false";
    assert_eq!(rows(&here, options), [old]);
}

#[test]
fn codex_has_its_own_file() {
    let here = CommandFolder::with("work/config.toml", TOML);
    let options = "--strategy codex --settings work/config.toml";
    let expected = "codex:auto_compact_limit=90000,tool_output_tokens=4000";
    assert_eq!(rows(&here, options), [expected]);
}

#[test]
fn files_of_one_name_are_told_apart_by_their_folders() {
    let here = CommandFolder::new();
    here.write(".gemini/settings.json", r#"{"model": {"compressionThreshold": 0.3}}"#);
    here.write("home/.pi/agent/settings.json", r#"{"compaction": {"reserveTokens": 20000}}"#);
    let env = r#"{"env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "60", "DISABLE_AUTO_COMPACT": "1"}}"#;
    here.write(".pi/.claude/settings.json", env);
    let both = r#"{"env": {"DISABLE_AUTO_COMPACT": "0", "DISABLE_COMPACT": "1",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}, "autoCompactEnabled": true,
        "autoCompactWindow": 400000}"#;
    here.write("other/.claude/settings.json", both);
    here.write("settings.json", r#"{"compaction": {"keepRecentTokens": 5000}}"#);
    for (strategy, file, row) in [
        ("gemini-cli", ".gemini/settings.json", "gemini-cli:threshold=0.3"),
        ("pi", "home/.pi/agent/settings.json", "pi:reserve=20000"),
        ("claude-code", ".pi/.claude/settings.json", "claude-code:auto=false,threshold_percent=60"),
        // A setting that disables it has priority, and a variable has priority over a setting.
        (
            "claude-code",
            "other/.claude/settings.json",
            "claude-code:auto=false,auto_compact_window=150000",
        ),
        // A file outside of the products' folders belongs to the requested product.
        ("pi", "settings.json", "pi:keep_recent=5000"),
    ] {
        assert_eq!(rows(&here, &format!("--strategy {strategy} --settings {file}")), [row]);
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let here = CommandFolder::new();
    here.write("opencode.json", "\u{feff}{\"compaction\": {\"prune\": true}}");
    let options = "--strategy opencode --settings opencode.json";
    assert_eq!(rows(&here, options), ["opencode:prune=true"]);
    here.write("config.toml", "\u{feff}tool_output_token_limit = 4000\n");
    let options = "--strategy codex --settings config.toml";
    assert_eq!(rows(&here, options), ["codex:tool_output_tokens=4000"]);
}

/// A single quote or a missing comma is not JSON with comments.
#[test]
fn nothing_else_beyond_json_is_read() {
    use ctxbench_kit::memory::parse_jsonc;
    assert!(parse_jsonc("{\"a\": [1, 2,], // one\n /* two */ \"b\": {},}").is_ok());
    for wrong in ["{a: 1}", "{\"a\": 'x'}", "[1 2]", "[+1]", "[0xff]", "[.5]", "[NaN]", "[,]"] {
        assert!(parse_jsonc(wrong).is_err(), "{wrong}");
    }
}
