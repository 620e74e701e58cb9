//! Versions of Aider.

use crate::descriptor::{Reads, Version, Versions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AiderVersion {
    /// Discards a finished summary if the history grew meanwhile.
    Released,
    /// Applies a finished summary to the messages that it covers.
    Intended,
    Described003,
}

impl Versions for AiderVersion {
    const TABLE: &'static [(Version, Self)] = &[
        (
            Version {
                about: "as released: throws the finished summary away whenever the history grew \
                    meanwhile, which it does after every edit (docs/sources/aider.md §1.2, \
                    surprise 1: 300 of 300 runs)",
                ..Version::released("0.86")
            },
            AiderVersion::Released,
        ),
        (
            Version {
                name: "intended",
                program: "0.86",
                about: "0.86 as it was meant to be: a finished summary replaces what it covers, \
                    and what was said since stays behind it",
                reads: Reads::All,
            },
            AiderVersion::Intended,
        ),
        (
            Version::described(
                "described-003",
                "published description (docs/sources/token-budgeting.md §2.4 and pitfalls 3 \
                     and 5; docs/sources/chat-history.md §2.1 for the two lists): every finished \
                     turn is history, the newest half of the budget stays behind `[chat summary] \
                     `, up to four summaries on end, the weak model alone is asked, a failure \
                     keeps the full history, the swap is atomic. In fact only edit turns are \
                     history, the head is cut at the summariser's limit, a second summary swallows \
                     the tail, and a finished summary is thrown away",
                Reads::All,
            ),
            AiderVersion::Described003,
        ),
    ];
}
