//! The list of strategies. A new one is a file and a line in [`ALL`].

use ctxbench_core::descriptor::{Build, Descriptor};
use ctxbench_core::nearest;
use ctxbench_core::provider::Model;
use ctxbench_core::settings::{SettingError, Settings};
use ctxbench_core::strategy::Strategy;
use ctxbench_core::wording::Wording;
use thiserror::Error;

/// Every strategy, in report order.
pub const ALL: &[Descriptor] = &[
    crate::controls::REFERENCE,
    crate::controls::NONE,
    crate::controls::KEEP_NOTHING,
    crate::sliding_window::DESCRIPTOR,
    crate::observation_masking::DESCRIPTOR,
    crate::aider_about::DESCRIPTOR,
    crate::codex_about::DESCRIPTOR,
    crate::opencode_about::DESCRIPTOR,
    crate::claude_code_about::DESCRIPTOR,
    crate::anthropic_sdk::DESCRIPTOR,
    crate::claude_code_api_about::DESCRIPTOR,
    crate::openoxide::DESCRIPTOR,
];

/// A strategy that cannot be used as asked.
#[derive(Debug, Error, PartialEq)]
pub enum SpecError {
    /// No such strategy.
    #[error("there is no strategy `{name}`; {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Nearest names.
        hint: String,
    },
    /// No such version.
    #[error("`{name}` has no version `{version}`; known are {known}")]
    UnknownVersion {
        /// Strategy.
        name: String,
        /// What was asked for.
        version: String,
        /// All versions.
        known: String,
    },
    /// A setting that does not fit.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// A strategy with its settings, as asked for: `name[@version][:setting=value,…]`.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The strategy.
    pub descriptor: &'static Descriptor,
    /// Version that it follows.
    pub version: &'static str,
    /// Settings, unscaled.
    pub settings: Settings,
}

impl Spec {
    /// Reads `name[@version][:setting=value,…]`.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let (head, settings) = text.split_once(':').unwrap_or((text, ""));
        let (name, version) = head.split_once('@').map_or((head, None), |(n, v)| (n, Some(v)));
        let Some(descriptor) = ALL.iter().find(|d| d.name == name) else {
            let names: Vec<&str> = ALL.iter().map(|d| d.name).collect();
            return Err(SpecError::Unknown { name: name.into(), hint: nearest::hint(name, &names) });
        };
        let version = match version {
            None => descriptor.versions[0],
            Some(v) => descriptor.versions.iter().find(|k| **k == v).ok_or_else(|| SpecError::UnknownVersion {
                name: name.into(),
                version: v.into(),
                known: descriptor.versions.join(", "),
            })?,
        };
        let settings = Settings::parse(name, descriptor.settings, settings)?;
        Ok(Spec { descriptor, version, settings })
    }

    /// Every strategy with its defaults.
    pub fn defaults() -> Vec<Spec> {
        ALL.iter().map(|d| Spec { descriptor: d, version: d.versions[0], settings: Settings::defaults(d.settings) }).collect()
    }

    /// Name with version and settings where they are not the defaults; the row's label.
    pub fn label(&self) -> String {
        let mut out = self.descriptor.name.to_string();
        if self.version != self.descriptor.versions[0] {
            out = format!("{out}@{}", self.version);
        }
        let given = self.settings.given_text();
        if given.is_empty() { out } else { format!("{out}:{given}") }
    }

    /// Settings with a scenario's scale applied.
    pub fn scaled(&self, scale: f64) -> Settings {
        self.settings.scaled(self.descriptor.settings, scale)
    }

    /// Why this cannot exist with a model; `None` = it can.
    pub fn unfit(&self, model: &Model) -> Option<&'static str> {
        (self.descriptor.unfit)(self.version, &self.settings, model)
    }

    /// Builds the strategy with our own prompt texts.
    pub fn build(&self, scale: f64) -> Box<dyn Strategy> {
        self.build_with(scale, &Wording::new(self.descriptor.wording))
    }

    /// Builds the strategy with given prompt texts.
    pub fn build_with(&self, scale: f64, wording: &Wording) -> Box<dyn Strategy> {
        let settings = self.scaled(scale);
        (self.descriptor.build)(&Build { version: self.version, settings: &settings, wording, scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_every_setting_has_a_source() {
        let names: HashSet<&str> = ALL.iter().map(|d| d.name).collect();
        assert_eq!(names.len(), ALL.len());
        for d in ALL {
            assert!(!d.versions.is_empty() && !d.sources.is_empty(), "{}", d.name);
            for s in d.settings {
                assert!(!s.source.is_empty() && !s.help.is_empty(), "{}:{}", d.name, s.name);
            }
        }
    }

    #[test]
    fn reads_names_versions_and_settings() {
        let s = Spec::parse("codex@0.104:auto_compact_limit=90k").unwrap();
        assert_eq!((s.descriptor.name, s.version, s.settings.int("auto_compact_limit")), ("codex", "0.104", Some(90_000)));
        assert_eq!(s.label(), "codex@0.104:auto_compact_limit=90000");
        assert_eq!(Spec::parse("codex").unwrap().label(), "codex");
    }

    #[test]
    fn errors_name_what_is_near() {
        let e = Spec::parse("codx").unwrap_err().to_string();
        assert!(e.contains("codex"), "{e}");
        let e = Spec::parse("codex@1").unwrap_err().to_string();
        assert!(e.contains("0.169"), "{e}");
        let e = Spec::parse("opencode:prun=true").unwrap_err().to_string();
        assert!(e.contains("prune"), "{e}");
    }
}
