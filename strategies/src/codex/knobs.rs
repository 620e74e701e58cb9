//! Documented settings of Codex CLI that change its compaction (docs/sources/codex.md §1.1, §1.2,
//! §3).

use crate::descriptor::Knob;

const DOCUMENTED: &str = "https://learn.chatgpt.com/docs/config-file/config-reference";
/// Top-level keys come before the file's first table.
const SETTINGS_FILE: &str = "~/.codex/config.toml, above the first [table]";

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        setting: "auto_compact_limit",
        values: &["100k", "150k", "200k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: "model_auto_compact_token_limit = {value}",
        caveat: "",
    },
    Knob {
        setting: "post_turn_percent",
        values: &["50", "70"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: "model_post_turn_compact_threshold_percent = {value}",
        caveat: "",
    },
    Knob {
        setting: "tool_output_tokens",
        values: &["2500", "5k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: "tool_output_token_limit = {value}",
        caveat: "A recording holds tool output as Codex cut it, so larger values of \
            tool_output_tokens cannot be tried.",
    },
];
