//! Versions of Gemini CLI.

use crate::descriptor::{Version, Versions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeminiCliVersion {
    V0_61,
}

impl Versions for GeminiCliVersion {
    const TABLE: &'static [(Version, Self)] =
        &[(Version::released("0.61"), GeminiCliVersion::V0_61)];
}
