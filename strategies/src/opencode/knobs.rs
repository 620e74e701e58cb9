//! Documented settings of OpenCode that change its compaction (docs/sources/opencode.md §1 to
//! §3.2).

use crate::descriptor::Knob;

const DOCUMENTED: &str = "https://opencode.ai/docs/config/#compaction";
const SETTINGS_FILE: &str = "~/.config/opencode/opencode.json, or the project's opencode.json";

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        setting: "prune",
        values: &["true"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""compaction": { "prune": {value} }"#,
        caveat: "",
    },
    Knob {
        setting: "reserved",
        values: &["40k", "80k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""compaction": { "reserved": {value} }"#,
        caveat: "OpenCode reads `reserved` for models with an input limit of their own only.",
    },
    Knob {
        setting: "preserve_recent_tokens",
        values: &["4k", "30k"],
        documented: "https://opencode.ai/config.json",
        place: SETTINGS_FILE,
        template: r#""compaction": { "preserve_recent_tokens": {value} }"#,
        caveat: "",
    },
    Knob {
        setting: "auto",
        values: &["false"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""compaction": { "auto": {value} }"#,
        caveat: "",
    },
];
