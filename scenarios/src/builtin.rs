//! Built-in scenarios, embedded in the binary.

use std::io::{Cursor, Read as _};
use std::path::PathBuf;
use std::sync::LazyLock;

use ctxbench_util::nearest;
use zip::ZipArchive;

use crate::error::{InputError, LoadError};
use crate::formats::Source;
use crate::jsonl;
use crate::scenario::{self, Companions, Scenario, no_base};

/// The zip archive of `data/` that `build.rs` writes.
const DATA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/data.zip"));

/// Ids of the built-in scenarios, in report order.
pub static IDS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("builtin.txt").lines().collect());

/// Loads all built-in scenarios, in the order of [`IDS`].
pub fn all() -> Result<Vec<Scenario>, LoadError> {
    IDS.iter().map(|id| by_id(id)).collect()
}

/// Loads the scenarios of a run without arguments, which have the tag `default`.
pub fn defaults() -> Result<Vec<Scenario>, LoadError> {
    IDS.iter().filter(|id| is_default(id)).map(|id| by_id(id)).collect()
}

/// Returns whether a scenario has the tag `default`, without loading its session. Returns true for
/// invalid TOML, so that loading it reports the error.
fn is_default(id: &str) -> bool {
    let text = Embedded { folder: id }.text("scenario.toml").unwrap_or_default();
    let has =
        |tags: &toml::Value| tags.as_array().is_some_and(|all| all.contains(&"default".into()));
    toml::from_str(&text).map_or(true, |t: toml::Table| t.get("tags").is_some_and(has))
}

/// Returns a built-in scenario; an error for an unknown id suggests the nearest ones.
pub fn by_id(id: &str) -> Result<Scenario, LoadError> {
    if !IDS.contains(&id) {
        let hint = nearest::hint_or(id, &IDS, "`ctxbench list scenarios` lists the built-in ones");
        let what = "file, folder or built-in scenario";
        return Err(LoadError::NoSuchName { what, name: id.to_string(), hint });
    }
    let beside = Embedded { folder: id };
    let file = format!("{id}/scenario.toml");
    let text = beside.text("scenario.toml").map_err(|e| LoadError::Io {
        path: PathBuf::from(&file),
        source: std::io::Error::other(e),
    })?;
    Ok(scenario::read(&text, &file, &beside)?)
}

/// Returns the built-in scenario `id`, which scenarios of any folder may extend.
pub(crate) fn base(id: &str) -> Result<Scenario, InputError> {
    by_id(id).map_err(|e| no_base(e, "extend another scenario"))
}

struct Embedded<'a> {
    folder: &'a str,
}

impl Embedded<'_> {
    fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        let path = format!("{}/{name}", self.folder);
        let read = || {
            let mut bytes = Vec::new();
            ZipArchive::new(Cursor::new(DATA))?.by_name(&path)?.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|e: zip::result::ZipError| format!("{path} is not embedded: {e}"))
    }
}

impl Companions for Embedded<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let bytes = self.bytes(name)?;
        String::from_utf8(bytes).map_err(|_| format!("{}/{name} is not UTF-8", self.folder))
    }

    fn base(&self, name: &str) -> Result<Scenario, InputError> {
        let Ok(bytes) = self.bytes(name) else { return base(name) };
        let file_name = format!("{}/{name}", self.folder);
        let source = Source::of_bytes(&bytes, &file_name);
        let loaded = jsonl::read(source.text()?.as_bytes(), &file_name)?;
        let mut scenario = Scenario::of_session(loaded);
        scenario.find_facts();
        Ok(scenario)
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_session::Entry;

    use super::*;

    /// Sessions that rank strategies must distinguish between them. With four facts, a lost fact
    /// costs a quarter of the score.
    #[test]
    fn what_is_shown_as_evidence_holds_enough_facts_of_several_kinds() {
        for s in all().unwrap() {
            let facts = &s.session.facts;
            let pairs: usize = facts.iter().map(|f| f.needs.len()).sum();
            let mut kinds: Vec<_> =
                facts.iter().filter(|f| !f.needs.is_empty()).map(|f| f.kind).collect();
            kinds.sort_unstable();
            kinds.dedup();
            let enough = pairs >= 20 && kinds.len() >= 4;
            assert!(enough || !s.is_evidence(), "{}: {pairs} pairs, {kinds:?}", s.id);
        }
        assert!(defaults().unwrap().iter().all(Scenario::is_evidence));
    }

    #[test]
    fn every_scenario_loads_without_warnings_and_says_what_it_is_for() {
        let all = all().unwrap();
        assert_eq!(all.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), *IDS);
        for s in &all {
            assert_eq!(s.warnings, Vec::<String>::new(), "{}", s.id);
            assert!(!s.title.is_empty() && !s.why.is_empty() && !s.pitfall.is_empty(), "{}", s.id);
            assert!(!s.session.facts.is_empty(), "{}", s.id);
            let tools = s.session.entries.iter().any(|e| matches!(e, Entry::Tool(_)));
            let talk = ["design-talk", "day-with-breaks"].contains(&s.id.as_str());
            assert_eq!(tools, !talk, "{}: all but two are about tools", s.id);
        }
        let ids: Vec<String> = defaults().unwrap().into_iter().map(|s| s.id).collect();
        assert_eq!(ids, IDS[..3], "a run without arguments stays short");
    }

    #[test]
    fn the_tight_one_is_the_same_session_under_smaller_limits() {
        let (plain, tight) = (by_id("login-bug").unwrap(), by_id("login-bug-tight").unwrap());
        assert_eq!(plain.session.entries, tight.session.entries);
        assert_eq!(plain.session.facts, tight.session.facts);
        assert!(tight.scale < plain.scale);
    }

    #[test]
    fn packed_sessions_unpack_to_the_pinned_text() {
        use ctxbench_util::hash::sha256;
        for (id, pinned) in [
            (
                "login-bug-marathon",
                "88f295250b28a936c62a7ed98b60201486054fee8cafd66bf6cb46271df5284f",
            ),
            ("ten-compactions", "612c1e3840dae8b89392fee7d7abcf9f82cb89d465600d5b8bf5b4b1c422410a"),
            ("million-tokens", "4ec1d9181e8dee0bb981a79af8042259a6870a6d3150c56cbb236694692d550f"),
            (
                "five-hundred-turns",
                "36dea546f9645b50dd3238bfaab3df9ef1f731461a55221746c7f3dd7f862b95",
            ),
        ] {
            let packed = Embedded { folder: id }.bytes("session.jsonl.zst").unwrap();
            let source = Source::of_bytes(&packed, "session.jsonl.zst");
            let text = source.text().unwrap();
            assert_eq!(sha256(text), pinned, "{id}");
        }
    }
}
