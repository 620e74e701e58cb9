use super::*;
use crate::record::Results;
use crate::row_cache::{Row, RowCache};
use crate::testing;

fn write_results(dir: &Path, results: &Results, matrix_md: &str) -> Result<(), ReportError> {
    let stored = StoredResults::new(results, &results.runs)?;
    let new = NewResults::create(dir)?;
    let matrix = Artifact { file: "matrix.md".into(), text: matrix_md.into() };
    let more: Vec<Artifact> = [matrix].into_iter().filter(|m| !m.text.is_empty()).collect();
    new.fill(&stored, &Hues::default(), &[], &more, false)?;
    new.publish()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A new folder, and the path of a results folder inside it.
fn folders() -> (tempfile::TempDir, PathBuf) {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    (tmp, out)
}

#[test]
fn publish_to_new_folder_writes_all_files_and_no_sibling() {
    let (tmp, out) = folders();
    write_results(&out, &testing::results(), "| a |\n|---|\n| b |\n").unwrap();
    let expected = [
        ".ctxbench",
        "compactions.csv",
        "costs.csv",
        "facts.csv",
        "index.html",
        "matrix.md",
        "plots",
        "requests.csv",
        "results.json",
        "results.sqlite",
        "summary.csv",
    ];
    assert_eq!(names(&out), expected);
    assert_eq!(names(tmp.path()), ["out"]);
    assert_eq!(json::read_results(&out).unwrap(), testing::results());
}

#[test]
fn publish_over_results_keeps_other_files_and_rows() {
    let (tmp, out) = folders();
    let mut results = testing::results();
    results.runs.push(testing::run("zz-second", "codex", 1));
    let row = Row { run: results.runs[0].clone(), ..Row::default() };
    RowCache::open(&default_cache(&out)).unwrap().store("00aa", row, false).unwrap();
    write_results(&out, &results, "").unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    fs::write(out.join("plots/mine.txt"), "mine").unwrap();
    assert!(out.join("plots/zz-second-cost-recall.svg").exists());
    write_results(&out, &testing::results(), "").unwrap();
    assert!(out.join("notes.txt").exists() && out.join("plots/mine.txt").exists());
    assert!(!out.join("plots/zz-second-cost-recall.svg").exists(), "a former plot stayed");
    assert!(RowCache::open(&default_cache(&out)).unwrap().find("00aa").is_some());
    assert_eq!(names(tmp.path()), ["out"]);
}

#[test]
fn publish_over_user_file_with_our_name_keeps_it_as_former() {
    let (_tmp, out) = folders();
    write_results(&out, &testing::results(), "").unwrap();
    fs::write(out.join("matrix.md"), "my own").unwrap();
    write_results(&out, &testing::results(), "| a |\n").unwrap();
    assert_eq!(fs::read_to_string(out.join("matrix.md")).unwrap(), "| a |\n");
    assert_eq!(fs::read_to_string(out.join("matrix.md.former")).unwrap(), "my own");
}

#[test]
fn publish_by_two_runs_at_once_keeps_whole_results_and_other_files() {
    let (tmp, out) = folders();
    write_results(&out, &testing::results(), "").unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..10 {
                    write_results(&out, &testing::results(), "").unwrap();
                }
            });
        }
    });
    assert_eq!(json::read_results(&out).unwrap(), testing::results());
    assert_eq!(fs::read_to_string(out.join("notes.txt")).unwrap(), "mine");
    assert_eq!(names(tmp.path()), ["out"]);
}

#[test]
fn create_in_foreign_folder_is_refused_and_changes_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    for marker in [None, Some(""), Some("something else\n")] {
        let out = tmp.path().join("thesis");
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join("chapter1.tex"), "years of work").unwrap();
        if let Some(text) = marker {
            fs::write(out.join(MARKER), text).unwrap();
        }
        let before = names(&out);
        let error = write_results(&out, &testing::results(), "").unwrap_err().to_string();
        assert!(error.ends_with("was not made by ctxbench; choose another --out"), "{error}");
        assert_eq!(names(&out), before);
        assert_eq!(names(tmp.path()), ["thesis"]);
    }
}

#[test]
fn create_in_empty_folder_succeeds_and_over_file_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("empty");
    fs::create_dir(&out).unwrap();
    fs::write(out.join(".ctxbench-1-1.tmp"), "half").unwrap();
    write_results(&out, &testing::results(), "").unwrap();
    assert!(out.join(MARKER).exists());
    let file = tmp.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = write_results(&file, &testing::results(), "").unwrap_err().to_string();
    assert!(error.contains("is not a folder"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
}
