//! User-visible options of pi (docs/sources/pi.md §1, §2).

use crate::descriptor::Knob;

const DOCUMENTED: &str =
    "https://github.com/earendil-works/pi/blob/main/packages/coding-agent/docs/settings.md";
const SETTINGS_FILE: &str = "~/.pi/agent/settings.json, or .pi/settings.json of the project";

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        setting: "reserve",
        values: &["40k", "80k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""compaction": { "reserveTokens": {value} }"#,
        caveat: "",
    },
    Knob {
        setting: "keep_recent",
        values: &["10k", "40k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""compaction": { "keepRecentTokens": {value} }"#,
        caveat: "",
    },
    Knob {
        setting: "auto",
        values: &["false"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""compaction": { "enabled": {value} }"#,
        caveat: "",
    },
];
