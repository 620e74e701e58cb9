//! List of strategies. To add one, write its folder and add a line to [`PRODUCTS`]; other crates use
//! [`add`].

use std::sync::{LazyLock, OnceLock};

use crate::descriptor::{BuildRequest, Descriptor, Product, SpecError, Version};
use crate::own_settings::SettingsFile;
use crate::sweep;
use ctxbench_core::settings::{Setting, SettingKind, Settings, UserSetting};
use ctxbench_core::{Model, Strategy};
use ctxbench_util::nearest;
use thiserror::Error;

/// All products of this crate, in report order.
const PRODUCTS: &[&'static dyn Product] = &[
    &crate::controls::REFERENCE,
    &crate::controls::NO_COMPACTION,
    &crate::controls::KEEP_NOTHING,
    &crate::controls::WORD_LIST,
    &crate::controls::SHUFFLED_LIST,
    &crate::controls::SLIDING_WINDOW,
    &crate::controls::OBSERVATION_MASKING,
    &crate::generational::GENERATIONAL,
    &crate::aider::AIDER,
    &crate::codex::CODEX,
    &crate::opencode::OPENCODE,
    &crate::pi::PI,
    &crate::gemini_cli::GEMINI_CLI,
    &crate::claude_code::CLAUDE_CODE,
    &crate::anthropic_sdk::ANTHROPIC_SDK,
    &crate::claude_code_api::CLAUDE_CODE_API,
    &crate::openoxide::OPENOXIDE,
];

/// Returns all strategies of this crate, in report order.
pub fn built_in() -> &'static [Descriptor] {
    static ALL: LazyLock<Vec<Descriptor>> =
        LazyLock::new(|| PRODUCTS.iter().copied().map(Descriptor::new).collect());
    &ALL
}

static ADDED: OnceLock<Vec<Descriptor>> = OnceLock::new();

/// A strategy that cannot be added to the registry.
#[derive(Debug, Error, PartialEq)]
pub enum AddError {
    /// Two strategies with the same name.
    #[error("there are two strategies `{0}`; give yours another name")]
    Twice(&'static str),
    #[error("strategies are added once, before any is looked up")]
    Late,
}

/// Adds strategies of another crate to those of this one. Can be called once per process.
pub fn add(own: &[&'static dyn Product]) -> Result<(), AddError> {
    let own: Vec<Descriptor> = own.iter().copied().map(Descriptor::new).collect();
    for (i, d) in own.iter().enumerate() {
        if built_in().iter().chain(&own[..i]).any(|known| known.name == d.name) {
            return Err(AddError::Twice(d.name));
        }
    }
    ADDED.set(own).map_err(|_| AddError::Late)
}

/// Iterates over all strategies: the built-in ones, then those added.
pub fn all() -> impl Iterator<Item = &'static Descriptor> + Clone {
    built_in().iter().chain(ADDED.get().into_iter().flatten())
}

/// A strategy with its settings, parsed from `name[@version][:setting=value,…]`.
#[derive(Clone, Debug)]
pub struct Spec {
    pub descriptor: &'static Descriptor,
    pub version: Version,
    pub settings: Settings,
}

impl Spec {
    /// Parses `name[@version][:setting=value,…]`.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let (head, settings) = text.split_once(':').unwrap_or((text, ""));
        let (name, version) = head.split_once('@').map_or((head, None), |(n, v)| (n, Some(v)));
        let Some(descriptor) = all().find(|d| d.name == name) else {
            let names: Vec<&str> = all().map(|d| d.name).collect();
            let hint = match name.contains(',') {
                true => "give one at a time, and repeat the option".to_string(),
                false => nearest::hint(name, &names),
            };
            return Err(SpecError::Unknown(format!("there is no strategy `{name}`; {hint}")));
        };
        let version = descriptor.version(version)?;
        let settings = Settings::parse(name, &descriptor.settings, settings)?;
        for row in &descriptor.settings {
            if !row.is_read_by(version.name) && settings.explicit().any(|(s, _)| s == row.name) {
                let (version, setting, known) = (version.name, row.name, row.versions.join(", "));
                return Err(SpecError::Unknown(format!(
                    "`{name}@{version}` does not read the setting `{setting}`; it belongs to {known}"
                )));
            }
        }
        Ok(Spec { descriptor, version, settings })
    }

    pub fn reads(&self, setting: &str) -> bool {
        let row = self.descriptor.settings.iter().find(|s| s.name == setting);
        row.is_some_and(|s| s.is_read_by(self.version.name))
    }

    /// Parses a specification with lists and ranges of values and returns a strategy for each
    /// combination: `codex:auto_compact_limit=[60k,50%]` or `…=60k..180k/30k`.
    pub fn sweep(text: &str) -> Result<Vec<Spec>, SpecError> {
        let name = text.split([':', '@']).next().unwrap_or_default();
        let own = all().find(|d| d.name == name).map_or(&[][..], |d| &d.settings);
        let is_text = |s: &str| own.iter().any(|k| k.name == s && k.kind == SettingKind::Text);
        sweep::expand(text, &is_text)?.iter().map(|s| Spec::parse(s)).collect()
    }

    /// Fills in settings from the text of a settings file of the product, as far as the version
    /// reads them and they are not given already. Returns `self` unchanged if the product has no
    /// such file.
    pub fn with_file(mut self, text: &str) -> Result<Spec, String> {
        let Some(file) = &self.descriptor.settings_file else { return Ok(self) };
        for (name, value) in file.read(&self.descriptor.settings, text)? {
            if self.reads(name) {
                let filled = self.settings.fill(self.descriptor.name, name, &value);
                filled.map_err(|e| e.to_string())?;
            }
        }
        Ok(self)
    }

    /// Replaces one setting. Does not check that the version reads it.
    pub fn with(mut self, setting: &str, value: &str) -> Result<Spec, SpecError> {
        self.settings.set(self.descriptor.name, setting, value)?;
        Ok(self)
    }

    /// Returns the product in the version that follows a release, unless another one was chosen.
    pub fn of_release(&self, release: Option<&str>) -> Spec {
        let about = self.descriptor;
        let named = release.filter(|_| self.version == about.versions[0]);
        let version = named.and_then(|release| about.following(release)).unwrap_or(self.version);
        Spec { version, ..self.clone() }
    }

    /// Returns those of [`Descriptor::knobs`] that the version reads.
    pub fn knobs(
        &self,
    ) -> impl Iterator<Item = (&'static SettingsFile, &'static Setting, &'static UserSetting)> {
        self.descriptor.knobs().filter(|(_, s, _)| s.is_read_by(self.version.name))
    }

    /// Returns all strategies but those that run only on request.
    pub fn defaults() -> Vec<Spec> {
        all()
            .filter(|d| !d.on_request)
            .map(|d| Spec {
                descriptor: d,
                version: d.versions[0],
                settings: Settings::defaults(&d.settings),
            })
            .collect()
    }

    /// Formats the label of a row: the name, with the version and settings that differ from the
    /// defaults.
    pub fn label(&self) -> String {
        let mut out = self.descriptor.name.to_string();
        if self.version != self.descriptor.versions[0] {
            out = format!("{out}@{}", self.version.name);
        }
        let given = self.settings.given_text();
        if given.is_empty() { out } else { format!("{out}:{given}") }
    }

    /// Returns the settings for a model with a window of `window` tokens, scale applied. Those that
    /// the version does not read have their defaults.
    pub fn applied(&self, scale: f64, window: u64) -> Settings {
        self.settings.limited_to(self.version.name).applied(scale, window)
    }

    /// Returns the context window in which the product works, tokens: `given`, or its default for
    /// the model, but at most what it allows. `None` = no other window than the model's or `given`.
    pub fn window(&self, model: &Model, given: Option<u64>) -> Option<u64> {
        let own = self.descriptor.windows.iter().find(|w| {
            let known = w.versions.is_empty() || w.versions.contains(&self.version.name);
            known && model.name.starts_with(w.models)
        })?;
        let assumed = given.unwrap_or(own.default).min(own.max.unwrap_or(u64::MAX));
        (assumed < given.unwrap_or(model.window)).then_some(assumed)
    }

    /// Returns why the strategy cannot run with a model; `None` = it can.
    pub fn unfit(&self, model: &Model) -> Option<&'static str> {
        let (settings, texts) = (&self.applied(1.0, model.window), &self.descriptor.words);
        let request = BuildRequest { version: self.version, settings, scale: 1.0, texts };
        let need = self.descriptor.product.needs(&request);
        need.filter(|n| !(n.is_met)(&model.capabilities)).map(|n| n.reason)
    }

    /// Builds the strategy for a model with a window of `window` tokens, scale applied.
    pub fn build(&self, scale: f64, window: u64) -> Box<dyn Strategy> {
        let (settings, texts) = (&self.applied(scale, window), &self.descriptor.words);
        let request = BuildRequest { version: self.version, settings, scale, texts };
        self.descriptor.product.build(&request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{DIMENSIONS, PlotColor, Rewind, Standing};
    use ctxbench_core::host::RewindMode;
    use ctxbench_core::settings::Value;
    use ctxbench_util::files;
    use std::collections::{BTreeSet, HashSet};
    use std::path::Path;

    /// Members that every `about.toml` has, although those of other crates may leave them out.
    const MEMBERS: [&str; 10] = [
        "name", "summary", "sources", "page", "standing", "color", "manual", "files", "matrix",
        "versions",
    ];

    #[test]
    fn every_about_file_is_of_a_registered_product_and_complete() {
        let mut paths = files::walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
        paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
        paths.retain(|p| !p.ends_with("failures.toml"));
        let mut found = HashSet::new();
        for path in paths {
            let table: toml::Table = files::read_text(&path).unwrap().parse().unwrap();
            for member in MEMBERS {
                assert!(table.contains_key(member), "{}: no `{member}`", path.display());
            }
            let answered: BTreeSet<_> =
                table["matrix"].as_table().unwrap().keys().cloned().collect();
            assert_eq!(answered, DIMENSIONS.map(|(name, _)| name.to_string()).into(), "{path:?}");
            found.insert(table["name"].as_str().unwrap().to_string());
        }
        assert_eq!(found, built_in().iter().map(|d| d.name.to_string()).collect());
        assert_eq!(found.len(), built_in().len(), "names are unique");
    }

    #[test]
    fn codex_assumes_the_windows_of_its_own_list_of_models() {
        // docs/sources/codex.md §3.
        for (version, model, given, window) in [
            ("codex", "gpt-5.5", None, Some(272_000)),
            ("codex@0.104", "gpt-5.5", None, Some(272_000)),
            ("codex", "gpt-5.5", Some(400_000), Some(272_000)),
            ("codex", "gpt-5.5", Some(30_000), None),
            ("codex", "gpt-6.1-terra", None, Some(500_000)),
            ("codex", "gpt-6-sol", None, Some(272_000)),
            ("codex", "gpt-6-sol", Some(1_000_000), Some(872_000)),
            ("codex", "claude-opus-4-7", None, Some(272_000)),
            ("codex", "claude-opus-4-7", Some(1_000_000), None),
            ("codex", "claude-sonnet-4-6", None, None),
            ("codex@0.63", "gpt-5.5", None, None),
            ("codex@described-002", "gpt-5.5", None, None),
            ("opencode", "gpt-5.5", None, None),
        ] {
            let model = ctxbench_core::model::find(model).unwrap();
            let got = Spec::parse(version).unwrap().window(model, given);
            assert_eq!(got, window, "{version} {} {given:?}", model.name);
        }
    }

    #[test]
    fn every_version_is_built_from_rows_that_it_knows() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for d in built_in() {
            assert!(!d.sources.is_empty(), "{}", d.name);
            assert!(root.join(d.page).is_file(), "{}: no page {}", d.name, d.page);
            for version in &d.versions {
                let spec = Spec::parse(&format!("{}@{}", d.name, version.name)).unwrap();
                spec.build(1.0, 200_000);
                spec.unfit(ctxbench_core::model::find("gpt-5.1").unwrap());
            }
            for s in &d.settings {
                let row = format!("{}:{}", d.name, s.name);
                assert!(!s.source.is_empty() && !s.help.is_empty(), "{row}");
                let text = s.default.to_string();
                assert_eq!(s.parse(text.trim_matches('"')), Ok(s.default.clone()), "{row}");
                let known = |v: &str| d.versions.iter().any(|known| known.name == v);
                assert!(s.versions.iter().all(|v| known(v)), "{row}: {:?}", s.versions);
                if let SettingKind::Choice(words) = s.kind {
                    for word in words {
                        let spec = Spec::parse(d.name).unwrap().with(s.name, word).unwrap();
                        spec.build(1.0, 200_000);
                    }
                }
            }
        }
    }

    #[test]
    fn a_knob_turns_a_setting_that_exists_to_values_that_fit_and_writes_them() {
        let with: Vec<&str> =
            built_in().iter().filter(|d| d.knobs().next().is_some()).map(|d| d.name).collect();
        assert_eq!(with, ["codex", "opencode", "pi", "gemini-cli", "claude-code"]);
        for spec in Spec::defaults() {
            for (file, setting, k) in spec.knobs() {
                let name = format!("{}:{}", spec.descriptor.name, setting.name);
                let documented = k.documented.unwrap_or(file.documented);
                assert!(documented.starts_with("https://") && !file.place.is_empty(), "{name}");
                let mut lines = HashSet::new();
                for value in &k.values {
                    let turned = spec.clone().with(setting.name, value).expect(&name);
                    let (_, value) = turned.settings.explicit().next().expect("one is given");
                    let line = file.line(k, value);
                    let fixed = *value == Value::Flag(false);
                    assert!(fixed || line.contains(&value.to_string()), "{name}: {line}");
                    assert!(lines.insert(line), "{name}");
                }
            }
        }
        let knobs = |name: &str| {
            Spec::parse(name).unwrap().knobs().map(|(_, s, _)| s.name).collect::<Vec<_>>()
        };
        assert!(knobs("codex").contains(&"post_turn_percent"));
        assert!(!knobs("codex@0.104").contains(&"post_turn_percent"));
    }

    #[test]
    fn what_comes_back_by_a_rewind_is_what_the_product_offers() {
        let rewind = |name: &str| Spec::parse(name).unwrap().descriptor.rewind;
        let with: Vec<&str> =
            built_in().iter().filter(|d| d.rewind != Rewind::default()).map(|d| d.name).collect();
        let own =
            ["generational", "codex", "opencode", "pi", "gemini-cli", "claude-code", "openoxide"];
        assert_eq!(with, own);
        assert!(
            rewind("codex").offers(RewindMode::Both) && !rewind("codex").offers(RewindMode::Code)
        );
        assert!(!rewind("opencode").offers(RewindMode::SummarizeFrom));
        let all = RewindMode::ALL.iter();
        assert!(all.clone().all(|m| rewind("claude-code").offers(*m)));
        assert!(all.clone().all(|m| !rewind("aider").offers(*m)));
    }

    #[test]
    fn hues_are_in_the_palette_and_shared_by_rows_of_one_product_only() {
        let hues: Vec<(&str, u8)> = built_in()
            .iter()
            .filter_map(|d| match d.color {
                PlotColor::Palette(hue) => Some((d.name, hue)),
                PlotColor::Grey => None,
            })
            .collect();
        assert!(hues.iter().all(|(_, hue)| *hue < 12), "the palette has twelve hues: {hues:?}");
        for (i, (a, hue)) in hues.iter().enumerate() {
            for (b, other) in &hues[i + 1..] {
                assert!(hue != other || b.starts_with(a), "{a} and {b} are drawn in one hue");
            }
        }
        let grey = |d: &Descriptor| matches!(d.color, PlotColor::Grey);
        assert!(built_in().iter().all(|d| grey(d) == (d.standing != Standing::Contender)));
    }

    #[test]
    fn labels_name_what_differs_from_the_defaults() {
        let limit = "codex:auto_compact_limit=90k,user_message_tokens=5k";
        let changed = Spec::parse(limit).unwrap().with("auto_compact_limit", "60k").unwrap();
        let label = "codex:auto_compact_limit=60000,user_message_tokens=5000";
        assert_eq!(changed.label(), label, "one setting is changed, the other stays");
        for (text, label, version, program) in [
            (
                "codex@0.104:auto_compact_limit=90k",
                "codex@0.104:auto_compact_limit=90000",
                "0.104",
                "0.104",
            ),
            (
                "codex@described-000:stream_retries=1",
                "codex@described-000:stream_retries=1",
                "described-000",
                "described-000",
            ),
            ("codex", "codex", "0.169", "0.169"),
            ("aider@0.86", "aider", "0.86", "0.86"),
            ("aider@intended", "aider@intended", "intended", "0.86"),
        ] {
            let spec = Spec::parse(text).unwrap();
            let read = (&*spec.label(), spec.version.name, spec.version.program());
            assert_eq!(read, (label, version, program));
        }
    }

    #[test]
    fn a_release_is_followed_by_the_version_of_its_range() {
        for (product, release, version) in [
            ("claude-code", "2.0.76", Some("2.0")),
            ("claude-code", "2.1.7", Some("2.0")),
            ("claude-code", "2.1.20", Some("2.0")),
            ("claude-code", "2.1.21", Some("2.1")),
            ("claude-code", "2.1.240", Some("2.1")),
            ("claude-code", "2.1.332", Some("2.1.332")),
            ("claude-code", "2.1.340", None),
            ("claude-code", "2.10.1", None),
            ("claude-code", "2.1.x", None),
            ("codex", "0.104.0-alpha.1", Some("0.104")),
            ("codex", "0.120.0", None),
        ] {
            let found = Spec::parse(product).unwrap().descriptor.following(release);
            assert_eq!(found.map(|v| v.name), version, "{product} {release}");
        }
    }

    #[test]
    fn errors_name_what_is_near() {
        for (text, part) in [
            ("codx", "codex"),
            ("codex,pi", "give one at a time"),
            ("codex@1", "0.169"),
            ("opencode:prun=true", "prune"),
            (
                "codex@described-000:remote=true",
                "`codex@described-000` does not read the setting `remote`; it belongs to 0.169, 0.104, \
                 0.63",
            ),
        ] {
            let e = Spec::parse(text).unwrap_err().to_string();
            assert!(e.contains(part), "{e}");
        }
    }
}
