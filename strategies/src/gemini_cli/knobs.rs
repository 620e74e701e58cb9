//! User-visible options of Gemini CLI (docs/sources/gemini-cli.md §1, §2).

use crate::descriptor::Knob;

const DOCUMENTED: &str =
    "https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md";
const SETTINGS_FILE: &str = "~/.gemini/settings.json, or .gemini/settings.json of the project";

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        setting: "threshold",
        values: &["0.2", "0.8"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""model": { "compressionThreshold": {value} }"#,
        caveat: "",
    },
    Knob {
        setting: "cut_to",
        values: &["10k", "80k"],
        documented: DOCUMENTED,
        place: SETTINGS_FILE,
        template: r#""tools": { "truncateToolOutputThreshold": {value} }"#,
        caveat: "Outputs of tools are cut to this size when they arrive, too; here they stand as \
            the session has them.",
    },
];
