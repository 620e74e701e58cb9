//! The scenarios inside the binary.

use std::path::PathBuf;

use ctxbench_core::nearest;
use include_dir::{Dir, include_dir};

use crate::error::LoadError;
use crate::scenario::{self, Beside, Scenario};
use crate::{jsonl, marathon};

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
    "wrong-window",
    "overflow-not-recognised",
    "subagent-results-lost",
    "delegated-search",
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
];

const MARATHON: &str = "login-bug-marathon";

/// Every built-in scenario, in the order of [`IDS`].
pub fn all() -> Result<Vec<Scenario>, LoadError> {
    IDS.iter().map(|id| by_id(id)).collect()
}

/// The scenarios of a run without arguments: those tagged `default`.
pub fn defaults() -> Result<Vec<Scenario>, LoadError> {
    Ok(all()?.into_iter().filter(|s| s.tags.iter().any(|t| t == "default")).collect())
}

/// One built-in scenario; an unknown id is an error that tells the nearest ones.
pub fn by_id(id: &str) -> Result<Scenario, LoadError> {
    if id == MARATHON {
        return marathon_scenario();
    }
    if !IDS.contains(&id) {
        return Err(LoadError::NoSuchName { name: id.to_string(), hint: nearest::hint(id, IDS) });
    }
    let beside = Embedded { folder: id };
    let file = format!("{id}/scenario.toml");
    let text = beside.text("scenario.toml").map_err(|e| LoadError::Io {
        path: PathBuf::from(&file),
        source: std::io::Error::other(e),
    })?;
    Ok(scenario::read(&text, &file, &beside)?)
}

/// A session made by rule, for scenarios that extend it as `generated:NAME`; `None` if `name` is no
/// such name.
pub(crate) fn generated(name: &str) -> Option<Result<Scenario, LoadError>> {
    let id = name.strip_prefix("generated:")?;
    Some(match marathon::generated_jsonl(id) {
        Some(text) => {
            jsonl::read(text.as_bytes(), name).map(Scenario::of_session).map_err(LoadError::from)
        }
        None => Err(LoadError::NoSuchName {
            name: name.to_string(),
            hint: nearest::hint(id, &marathon::generated_ids()),
        }),
    })
}

fn marathon_scenario() -> Result<Scenario, LoadError> {
    let mut out =
        Scenario::of_session(jsonl::read(marathon::session_jsonl().as_bytes(), MARATHON)?);
    out.tags = vec!["default".to_string()];
    out.why =
        "A whole working day in one session, several windows long. What the user said in the \
        morning is needed in the \
               evening, values are replaced on the way, and between them lie tool results that \
               nobody will ask for again. Every \
               strategy has to compact more than once, so that losses can add up. A good strategy \
               still knows the first goal, the \
               rules and the latest version of each value after its last compaction."
            .to_string();
    out.pitfall = "Summaries of summaries: each one drops or blurs a little, a replaced value \
        comes back, and what was said \
                   first is gone though nothing ever replaced it."
        .to_string();
    Ok(out)
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

    fn base(&self, name: &str) -> Result<Scenario, (String, String)> {
        if name == self.folder {
            return Err((
                format!("{name:?} extends itself"),
                "extend another scenario".to_string(),
            ));
        }
        generated(name).unwrap_or_else(|| by_id(name)).map_err(|e| match e {
            LoadError::NoSuchName { hint, .. } => {
                (format!("no built-in scenario is called {name:?}"), hint)
            }
            other => (
                format!("cannot extend {name:?}: {other}"),
                "correct that scenario first".to_string(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::session::Entry;

    use super::*;

    #[test]
    fn every_scenario_loads_without_warnings_and_says_what_it_is_for() {
        let all = all().unwrap();
        assert_eq!(all.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), IDS);
        for s in &all {
            assert_eq!(s.warnings, Vec::<String>::new(), "{}", s.id);
            assert!(!s.title.is_empty() && !s.why.is_empty() && !s.pitfall.is_empty(), "{}", s.id);
            assert!(!s.session.facts.is_empty(), "{}", s.id);
            let tools = s.session.entries.iter().any(|e| matches!(e, Entry::Tool(_)));
            assert_eq!(tools, s.id != "design-talk", "{}: all but one are about tools", s.id);
            let checked = s.expect.steps.is_some()
                && s.expect.requests.is_some()
                && s.expect.strategies.len() >= 3;
            assert!(checked || s.id == MARATHON, "{} expects too little", s.id);
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
