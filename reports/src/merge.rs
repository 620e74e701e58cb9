//! Several results as one: the parts of a run that was divided, or runs that were made apart.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fmt;
use crate::formats::ReportError;
use crate::json::ReadError;
use crate::record::{Results, RunRecord, SessionList};
use crate::results_file::ResultsFile;
use crate::row_store::sort_runs;
use crate::stored::{Rows, Take};
use crate::view;

/// Why results cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("there is nothing to merge; name the folders of results")]
    Nothing,
    #[error(
        "{first} was written by {a} and {second} by {b}; run one of them again with the other's \
         version"
    )]
    Generator { first: String, a: String, second: String, b: String },
    #[error(
        "{first} and {second} rest on different assumptions, so their rows are not comparable: \
         {name} is `{a}` in one and `{b}` in the other; run one of them again"
    )]
    Assumption { first: String, second: String, name: String, a: String, b: String },
    #[error("{first} is a part of {n} and {second} is not; merge the parts of one run")]
    Parts { first: String, second: String, n: usize },
    #[error(
        "the parts are not of one list of sessions: {}; run the parts again over the same files \
         and with the same --limit, --sample, --min-tokens and --since",
        told.join(", ")
    )]
    Lists { told: Vec<String> },
    #[error(
        "{part} does not say which sessions it is a part of, so nobody can tell whether one is \
         missing; run it again with this version"
    )]
    NoList { part: String },
    #[error("{}; run it and merge again, or merge what there is with --partial", missing(parts, *of))]
    Missing { parts: Vec<usize>, of: usize },
}

fn missing(parts: &[usize], of: usize) -> String {
    let named: Vec<String> = parts.iter().take(20).map(|i| format!("{i}/{of}")).collect();
    let more = if parts.len() > 20 { format!(" and {} more", parts.len() - 20) } else { "".into() };
    let (part, is) = if parts.len() == 1 { ("part", "is") } else { ("parts", "are") };
    format!("{part} {}{more} of the run {is} missing", named.join(", "))
}

/// What follows from the rows of one session together, such as savings.
pub type Complete = fn(Vec<RunRecord>) -> Vec<RunRecord>;

/// Results put together, sessions by their ids.
pub struct Merged {
    /// All but the rows.
    pub head: Results,
    files: Vec<ResultsFile>,
    /// The places of each session: file, and place in it.
    sessions: BTreeMap<String, Vec<(usize, usize)>>,
    complete: Complete,
}

impl Merged {
    /// Opens results that were written under the same assumptions. `partial` = parts of a run may
    /// be missing.
    pub fn open(
        paths: &[impl AsRef<Path>],
        partial: bool,
        complete: Complete,
    ) -> Result<Merged, MergeError> {
        let open = |p: &_| ResultsFile::open(AsRef::<Path>::as_ref(p));
        let files = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = files.first() else { return Err(MergeError::Nothing) };
        let mut head = first.head.without_rows();
        for other in &files[1..] {
            agree(first, other)?;
            take_assumptions(&mut head.assumptions, &files, other)?;
        }
        of_one_list(&files)?;
        (head.shard, head.list) = (rest(&files, partial)?, None);
        let mut sessions: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
        for (f, file) in files.iter().enumerate() {
            for (at, id) in file.ids().into_iter().enumerate() {
                sessions.entry(id).or_default().push((f, at));
            }
        }
        Ok(Merged { head, files, sessions, complete })
    }

    fn session(&self, places: &[(usize, usize)]) -> Result<Vec<RunRecord>, ReportError> {
        let mut rows: Vec<(usize, RunRecord)> = Vec::new();
        for (file, at) in places {
            rows.extend(self.files[*file].session(*at)?.into_iter().map(|r| (*file, r)));
        }
        rows.sort_by(|(_, a), (_, b)| key(a).cmp(&key(b)));
        let mut kept: Vec<(usize, RunRecord)> = Vec::new();
        for (file, row) in rows {
            match kept.last().filter(|(_, last)| key(last) == key(&row)) {
                Some((other, last)) if !same(last, &row) => {
                    let name = |f: usize| self.files[f].path.display().to_string();
                    return Err(ReportError::Twice {
                        row: view::name(&row.scenario.id, &row.strategy.label, &row.model, true),
                        first: name(*other),
                        second: name(file),
                    });
                }
                Some(_) => {}
                None => kept.push((file, row)),
            }
        }
        let mut rows: Vec<RunRecord> = kept.into_iter().map(|(_, r)| r).collect();
        sort_runs(&mut rows);
        Ok((self.complete)(rows))
    }
}

impl Rows for Merged {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        self.sessions.values().try_for_each(|places| take(&self.session(places)?))
    }
}

fn key(r: &RunRecord) -> (&str, &str, Option<&str>, Option<u64>) {
    (&r.strategy.label, &r.model, r.summariser.as_deref(), r.seed)
}

/// The same but for savings, which also depend on the other rows of a folder.
fn same(a: &RunRecord, b: &RunRecord) -> bool {
    let bare = |r: &RunRecord| {
        let mut r = r.clone();
        (r.summary.saved_pct, r.summary.cost_saved_pct) = (None, None);
        r
    };
    bare(a) == bare(b)
}

fn named(file: &ResultsFile) -> String {
    file.path.display().to_string()
}

fn agree(first: &ResultsFile, second: &ResultsFile) -> Result<(), MergeError> {
    let (a, b) = (&first.head, &second.head);
    if a.generator != b.generator {
        return Err(MergeError::Generator {
            first: named(first),
            a: a.generator.clone(),
            second: named(second),
            b: b.generator.clone(),
        });
    }
    Ok(())
}

/// Assumptions about a model stand only where a session was run with it.
fn take_assumptions(
    all: &mut BTreeMap<String, String>,
    files: &[ResultsFile],
    other: &ResultsFile,
) -> Result<(), MergeError> {
    for (name, value) in &other.head.assumptions {
        let known = all.entry(name.clone()).or_insert_with(|| value.clone());
        if known != value {
            let says = |f: &&ResultsFile| f.head.assumptions.get(name) == Some(known);
            return Err(MergeError::Assumption {
                first: files.iter().find(says).map(named).unwrap_or_default(),
                second: named(other),
                name: name.clone(),
                a: known.clone(),
                b: value.clone(),
            });
        }
    }
    Ok(())
}

/// Parts of other lists than the first are refused: each names how many sessions it saw.
fn of_one_list(files: &[ResultsFile]) -> Result<(), MergeError> {
    let mut lists: Vec<(&SessionList, String)> = Vec::new();
    for file in files {
        let Some((i, n)) = file.head.shard else { continue };
        let part = format!("part {i}/{n} in {}", named(file));
        let Some(list) = &file.head.list else { return Err(MergeError::NoList { part }) };
        if lists.iter().all(|(known, _)| *known != list) {
            lists.push((list, part));
        }
    }
    if lists.len() < 2 {
        return Ok(());
    }
    let mut told: Vec<String> = Vec::new();
    for (at, (list, part)) in lists.iter().enumerate() {
        let as_many = lists[..at].iter().any(|(other, _)| other.sessions == list.sessions);
        let others = if as_many { " with other names or in another order" } else { "" };
        told.push(format!("{part} is of {}{others}", fmt::many(list.sessions, "session")));
    }
    Err(MergeError::Lists { told })
}

/// The part that these make together: none when they are the whole.
fn rest(files: &[ResultsFile], partial: bool) -> Result<Option<(usize, usize)>, MergeError> {
    let of = |f: &ResultsFile| f.head.shard.map(|(_, n)| n);
    let Some((first, n)) = files.iter().find_map(|f| Some((f, of(f)?))) else { return Ok(None) };
    if let Some(second) = files.iter().find(|f| of(f) != Some(n)) {
        return Err(MergeError::Parts { first: named(first), second: named(second), n });
    }
    let there: Vec<usize> = files.iter().filter_map(|f| Some(f.head.shard?.0)).collect();
    let parts: Vec<usize> = (1..=n).filter(|i| !there.contains(i)).collect();
    match parts.is_empty() || partial {
        true => Ok(None),
        false => Err(MergeError::Missing { parts, of: n }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, sample};

    fn folder(name: &str, results: &Results, all: &tempfile::TempDir) -> std::path::PathBuf {
        let path = all.path().join(name);
        std::fs::write(&path, json::results_text(results).unwrap()).unwrap();
        path
    }

    fn of(sessions: &[&str], shard: Option<(usize, usize)>) -> Results {
        let labels = || ["codex", "none"].into_iter();
        let runs = sessions.iter().flat_map(|s| labels().map(move |l| sample::run(s, l, 1)));
        let list = shard.map(|_| SessionList::of(["s1", "s2", "s3"]));
        Results { version: 1, shard, list, runs: runs.collect(), ..Results::default() }
    }

    fn merged(paths: &[std::path::PathBuf], partial: bool) -> Result<Vec<RunRecord>, String> {
        let merged = Merged::open(paths, partial, |rows| rows).map_err(|e| e.to_string())?;
        let mut rows = vec![];
        let read = merged.sessions(&mut |session| {
            rows.extend_from_slice(session);
            Ok(())
        });
        read.map_err(|e| e.to_string()).map(|()| rows)
    }

    #[test]
    fn parts_make_the_whole_and_a_missing_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let a = folder("a", &of(&["s1", "s3"], Some((1, 3))), &dir);
        let b = folder("b", &of(&["s2"], Some((2, 3))), &dir);
        let c = folder("c", &of(&[], Some((3, 3))), &dir);
        let all = merged(&[c.clone(), b.clone(), a.clone()], false).unwrap();
        assert_eq!(all, of(&["s1", "s2", "s3"], None).runs);
        let error = merged(&[a.clone(), c.clone()], false).unwrap_err();
        assert!(error.starts_with("part 2/3 of the run is missing"), "{error}");
        assert_eq!(merged(&[a.clone(), c], true).unwrap().len(), 4);
        let other = folder("other", &of(&["s9"], None), &dir);
        let error = merged(&[a, other], false).unwrap_err();
        assert!(error.contains("is a part of 3 and"), "{error}");
        assert!(merged(&[], false).unwrap_err().contains("nothing to merge"));
    }

    #[test]
    fn parts_of_other_lists_of_sessions_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let part = |name: &str, i: usize, list: Option<&[&str]>| {
            let list = list.map(|ids| SessionList::of(ids.iter().copied()));
            folder(name, &Results { list, ..of(&["s1"], Some((i, 3))) }, &dir)
        };
        let four = part("four", 1, Some(&["s1", "s2", "s3", "s4"]));
        let five = part("five", 2, Some(&["s0", "s1", "s2", "s3", "s4"]));
        let other = part("other", 3, Some(&["s1", "s2", "s4", "s3"]));
        // A part that is missing is not what matters here.
        for partial in [false, true] {
            let all = [four.clone(), five.clone(), other.clone()];
            let error = merged(&all, partial).unwrap_err();
            let told = [
                "part 1/3 in ",
                "four is of 4 sessions, part 2/3 in ",
                "five is of 5 sessions, ",
                "part 3/3 in ",
                "other is of 4 sessions with other names",
                "--limit",
            ];
            told.iter().for_each(|t| assert!(error.contains(t), "{t}: {error}"));
        }
        let mute = part("mute", 2, None);
        let error = merged(&[four, mute], true).unwrap_err();
        assert!(error.contains("mute does not say which sessions"), "{error}");
        // Names that run into each other are other names.
        assert_ne!(SessionList::of(["ab", "c"]), SessionList::of(["a", "bc"]));
    }

    #[test]
    fn a_row_may_stand_twice_but_not_with_other_figures() {
        let dir = tempfile::tempdir().unwrap();
        let a = folder("a", &of(&["s1"], None), &dir);
        let b = folder("b", &of(&["s1", "s2"], None), &dir);
        assert_eq!(merged(&[a.clone(), b], false).unwrap(), of(&["s1", "s2"], None).runs);
        let mut other = of(&["s1"], None);
        other.runs[0].summary.cost_usd += 1.0;
        let other = folder("other", &other, &dir);
        let error = merged(&[a, other], false).unwrap_err();
        assert!(error.starts_with("s1 × codex × claude-sonnet-4-6 stands in"), "{error}");
    }

    #[test]
    fn what_rests_on_other_assumptions_is_not_put_together() {
        let dir = tempfile::tempdir().unwrap();
        let with = |name: &str, file: &str, assumptions: &[(&str, &str)]| {
            let mut results = of(&[file], None);
            results.generator = name.into();
            let all = assumptions.iter().map(|(k, v)| (k.to_string(), v.to_string()));
            results.assumptions = all.collect();
            folder(file, &results, &dir)
        };
        let a = with("ctxbench 1", "a", &[("seed", "1"), ("prices of x", "p")]);
        let b = with("ctxbench 1", "b", &[("seed", "1"), ("prices of y", "q")]);
        let together = Merged::open(&[a.clone(), b], false, |r| r).unwrap().head.assumptions;
        assert_eq!(together.len(), 3);
        let c = with("ctxbench 1", "c", &[("seed", "2")]);
        let error = merged(&[a.clone(), c], false).unwrap_err();
        assert!(error.contains("seed is `1` in one and `2` in the other"), "{error}");
        let d = with("ctxbench 2", "d", &[]);
        assert!(merged(&[a, d], false).unwrap_err().contains("ctxbench 2"));
    }
}
