//! What people can turn in Claude Code (docs/sources/claude-code.md §1.1).

use crate::descriptor::Knob;

const DOCUMENTED: &str = "https://code.claude.com/docs/en/env-vars";
/// Variables in the `env` of settings.json are reported not to reach this threshold
/// (<https://github.com/anthropics/claude-code/issues/63186>), so all of them go to the shell.
const PLACE: &str = "the shell that starts claude, such as ~/.bashrc or ~/.zshrc";

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        setting: "threshold_percent",
        values: &["50", "60", "70", "80"],
        documented: DOCUMENTED,
        place: PLACE,
        template: "export CLAUDE_AUTOCOMPACT_PCT_OVERRIDE={value}",
        unseen: "",
    },
    Knob {
        setting: "auto_compact_window",
        // 100,000 is the least that it takes.
        values: &["100k", "150k", "400k"],
        documented: DOCUMENTED,
        place: PLACE,
        template: "export CLAUDE_CODE_AUTO_COMPACT_WINDOW={value}",
        unseen: "",
    },
    Knob {
        setting: "auto",
        values: &["false"],
        documented: DOCUMENTED,
        place: PLACE,
        template: "export DISABLE_AUTO_COMPACT=1",
        unseen: "",
    },
];
