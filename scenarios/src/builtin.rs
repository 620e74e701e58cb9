//! The scenarios inside the binary.

use std::path::PathBuf;

use ctxbench_core::nearest;
use include_dir::{Dir, include_dir};

use crate::error::{LoadError, Loaded};
use crate::marathon;
use crate::scenario::{self, Beside, NoBase, Scenario};

static DATA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data");

/// Every built-in scenario's id, in report order.
pub const IDS: &[&str] = &[
    "login-bug",
    "login-bug-tight",
    "login-bug-marathon",
    "compaction-loop",
    "task-state-lost",
    "summary-overflows",
    "summary-times-out",
    "work-redone",
    "prohibition-tested-late",
    "pruning-busts-cache",
    "parallel-batch-cut",
    "results-of-one-reply",
    "wrong-window",
    "overflow-not-recognised",
    "subagent-results-lost",
    "delegated-search",
    "bill-beside-the-context",
    "last-request-at-the-boundary",
    "result-needed-later",
    "mode-and-skill-state",
    "image-bytes",
    "result-larger-than-input",
    "design-talk",
    "chinese-and-japanese",
    "base64-and-minified",
    "giant-result",
    "middle-cut-fact",
    "huge-next-reply",
    "repo-map-squeeze",
    "window-8k",
    "window-32k",
    "fast-user",
    "resume-overnight",
    "day-with-breaks",
    "summary-fails",
    "summary-empty",
    "summary-too-long",
    "ten-compactions",
    "five-hundred-turns",
    "million-tokens",
    "long-reasoning",
    "markdown-breaking-replies",
    "exact-values",
    "mind-changed",
    "server-compaction-billing",
    "compaction-stop",
    "team-burst",
    "compact-focus",
    "rewind-plain",
    "rewind-shell",
    "rewind-summarise-from",
    "rewind-summarise-to",
    "two-sessions",
];

/// Every built-in scenario, in the order of [`IDS`].
pub fn all() -> Result<Vec<Scenario>, LoadError> {
    IDS.iter().map(|id| by_id(id)).collect()
}

/// The scenarios of a run without arguments: those tagged `default`.
pub fn defaults() -> Result<Vec<Scenario>, LoadError> {
    IDS.iter().filter(|id| is_default(id)).map(|id| by_id(id)).collect()
}

/// Whether the file of a scenario says so, without its session; one that is no TOML is loaded, which
/// tells why.
fn is_default(id: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Tagged {
        #[serde(default)]
        tags: Vec<String>,
    }
    let text = Embedded { folder: id }.text("scenario.toml").unwrap_or_default();
    let tagged = |t: Tagged| t.tags.iter().any(|tag| tag == "default");
    toml::from_str(&text).map_or(true, tagged)
}

/// One built-in scenario; an unknown id is an error that tells the nearest ones.
pub fn by_id(id: &str) -> Result<Scenario, LoadError> {
    if !IDS.contains(&id) {
        let hint = nearest::hint_or(id, IDS, "`ctxbench list scenarios` shows what is built in");
        return Err(LoadError::NoSuchName { name: id.to_string(), hint });
    }
    let beside = Embedded { folder: id };
    let file = format!("{id}/scenario.toml");
    let text = beside.text("scenario.toml").map_err(|e| LoadError::Io {
        path: PathBuf::from(&file),
        source: std::io::Error::other(e),
    })?;
    Ok(scenario::read(&text, &file, &beside)?)
}

/// A scenario that another one may extend wherever it stands: a built-in one, or a session made by
/// rule as `generated:NAME`; `None` if `name` is no such name.
pub(crate) fn base(name: &str) -> Option<Result<Scenario, LoadError>> {
    let Some(id) = name.strip_prefix("generated:") else {
        return IDS.contains(&name).then(|| by_id(name));
    };
    let made = marathon::generated(id).ok_or_else(|| LoadError::NoSuchName {
        name: name.to_string(),
        hint: nearest::hint(id, &marathon::generated_ids()),
    });
    Some(made.map(|session| Scenario::of_session(Loaded { session, warnings: Vec::new() })))
}

struct Embedded<'a> {
    folder: &'a str,
}

impl Beside for Embedded<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let path = format!("{}/{name}", self.folder);
        let file = DATA.get_file(&path).ok_or_else(|| format!("{path} is not embedded"))?;
        file.contents_utf8().map(str::to_string).ok_or_else(|| format!("{path} is not UTF-8"))
    }

    fn base(&self, name: &str) -> Result<Scenario, NoBase> {
        let what = format!("no built-in scenario is called {name:?}");
        Err(NoBase::Name(what, nearest::hint(name, IDS)))
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::session::Entry;

    use super::*;

    /// What strategies are ranked by must be able to tell them apart: one fact lost of four is a
    /// quarter of the score.
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
        assert_eq!(all.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), IDS);
        for s in &all {
            assert_eq!(s.warnings, Vec::<String>::new(), "{}", s.id);
            assert!(!s.title.is_empty() && !s.why.is_empty() && !s.pitfall.is_empty(), "{}", s.id);
            assert!(!s.session.facts.is_empty(), "{}", s.id);
            let tools = s.session.entries.iter().any(|e| matches!(e, Entry::Tool(_)));
            let talk = ["design-talk", "day-with-breaks"].contains(&s.id.as_str());
            assert_eq!(tools, !talk, "{}: all but two are about tools", s.id);
            let checked = s.expect.steps.is_some()
                && s.expect.requests.is_some()
                && s.expect.strategies.len() >= 3;
            assert!(checked || s.id == "login-bug-marathon", "{} expects too little", s.id);
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
    fn an_unknown_id_tells_the_nearest() {
        let e = by_id("login-bgu").unwrap_err().to_string();
        assert!(e.contains("did you mean login-bug"), "{e}");
    }
}
