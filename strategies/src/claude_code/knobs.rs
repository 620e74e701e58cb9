//! Documented settings of Claude Code that change its compaction (docs/sources/claude-code.md
//! §1.1).

use crate::descriptor::Knob;

const DOCUMENTED: &str = "https://code.claude.com/docs/en/env-vars";
/// Variables in the `env` of settings.json are reported not to reach this threshold
/// (<https://github.com/anthropics/claude-code/issues/63186>), so all of them go to the shell.
const SETTINGS_FILE: &str = "the shell that starts claude, such as ~/.bashrc or ~/.zshrc";

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        setting: "threshold_percent",
        values: &["50", "60", "70", "80"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: "export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE={value}",
        caveat: "",
    },
    Knob {
        setting: "auto_compact_window",
        // 100,000 is the minimum that it accepts.
        values: &["100k", "150k", "400k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: "export CLAUDE_CODE_AUTO_COMPACT_WINDOW={value}",
        caveat: "",
    },
    Knob {
        setting: "auto",
        values: &["false"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: "export DISABLE_AUTO_COMPACT=1",
        caveat: "",
    },
];
