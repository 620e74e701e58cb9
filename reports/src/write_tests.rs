use super::*;
use crate::record::Results;
use crate::sample;

fn write_results(dir: &Path, results: &Results, matrix_md: &str) -> Result<(), WriteError> {
    let stored = Stored::new(results, &results.runs)?;
    let mut new = Placing::into_folder(dir)?;
    new.begin()?;
    new.fill(&stored, &Looks::default(), matrix_md, &[], false)?;
    new.put()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn writes_everything_and_leaves_nothing_beside_it() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    write_results(&out, &sample::results(), "| a |\n|---|\n| b |\n").unwrap();
    let expected = [
        ".ctxbench",
        "compactions.csv",
        "costs.csv",
        "delegation.csv",
        "facts.csv",
        "index.html",
        "matrix.md",
        "plots",
        "requests.csv",
        "results.json",
        "results.sqlite",
        "resume.csv",
        "rewind.csv",
        "summary.csv",
    ];
    assert_eq!(names(&out), expected);
    assert_eq!(names(tmp.path()), ["out"]);
    assert_eq!(json::read_results(&out).unwrap(), sample::results());
}

#[test]
fn replaces_its_own_and_keeps_what_others_put_there() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let mut results = sample::results();
    results.runs.push(sample::run("zz-second", "codex", 1));
    write_results(&out, &results, "").unwrap();
    fs::write(out.join("timings.json"), "{}").unwrap();
    fs::write(out.join("plots/mine.txt"), "mine").unwrap();
    assert!(out.join("plots/zz-second-context.svg").exists());
    write_results(&out, &sample::results(), "").unwrap();
    assert!(out.join("timings.json").exists() && out.join("plots/mine.txt").exists());
    assert!(!out.join("plots/zz-second-context.svg").exists(), "a plot of the former run stayed");
    assert_eq!(names(tmp.path()), ["out"]);
}

#[test]
fn a_file_of_others_whose_name_becomes_ours_is_kept_under_another() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    write_results(&out, &sample::results(), "").unwrap();
    fs::write(out.join("matrix.md"), "my own").unwrap();
    write_results(&out, &sample::results(), "| a |\n").unwrap();
    assert_eq!(fs::read_to_string(out.join("matrix.md")).unwrap(), "| a |\n");
    assert_eq!(fs::read_to_string(out.join("matrix.md.former")).unwrap(), "my own");
}

#[test]
fn killed_between_the_renames_the_former_results_come_back() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    write_results(&out, &sample::results(), "").unwrap();
    fs::rename(&out, tmp.path().join(".out.old-123")).unwrap();
    fs::create_dir(tmp.path().join(".out.new-123")).unwrap();
    fs::create_dir(tmp.path().join(".out.new-mine")).unwrap();
    let notes = restore(&out).unwrap();
    assert!(notes.len() == 1 && notes[0].contains("are in"), "{notes:?}");
    assert_eq!(names(tmp.path()), [".out.new-mine", "out"]);
    assert_eq!(json::read_results(&out).unwrap(), sample::results());
}

#[test]
fn killed_after_the_renames_what_others_put_there_comes_along() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    write_results(&out, &sample::results(), "").unwrap();
    fs::write(out.join("notes.txt"), "mine").unwrap();
    fs::rename(&out, tmp.path().join(".out.old-123")).unwrap();
    write_results(&out, &sample::results(), "").unwrap();
    assert_eq!(restore(&out).unwrap().len(), 1);
    assert_eq!(fs::read_to_string(out.join("notes.txt")).unwrap(), "mine");
    assert_eq!(names(tmp.path()), ["out"]);
    assert_eq!(restore(&out).unwrap(), Vec::<String>::new());
}

#[test]
fn a_foreign_folder_is_refused_and_untouched() {
    let tmp = tempfile::tempdir().unwrap();
    for marker in [None, Some(""), Some("something else\n")] {
        let out = tmp.path().join("thesis");
        fs::create_dir_all(&out).unwrap();
        fs::write(out.join("chapter1.tex"), "years of work").unwrap();
        if let Some(text) = marker {
            fs::write(out.join(MARKER), text).unwrap();
        }
        let before = names(&out);
        let error = write_results(&out, &sample::results(), "").unwrap_err().to_string();
        assert!(error.ends_with("was not made by ctxbench; choose another --out"), "{error}");
        assert_eq!(names(&out), before);
        assert_eq!(names(tmp.path()), ["thesis"]);
    }
}

#[test]
fn an_empty_folder_will_do_and_a_file_will_not() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("empty");
    fs::create_dir(&out).unwrap();
    write_results(&out, &sample::results(), "").unwrap();
    let file = tmp.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(
        write_results(&file, &sample::results(), "")
            .unwrap_err()
            .to_string()
            .contains("is not a folder")
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
}

#[test]
fn the_same_results_make_the_same_bytes() {
    let tmp = tempfile::tempdir().unwrap();
    let (a, b) = (tmp.path().join("a"), tmp.path().join("b"));
    write_results(&a, &sample::results(), "").unwrap();
    write_results(&b, &sample::results(), "").unwrap();
    for name in names(&a).iter().filter(|n| *n != "plots") {
        assert_eq!(fs::read(a.join(name)).unwrap(), fs::read(b.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_folder_with_nothing_but_what_a_killed_write_left_is_empty() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join(".ctxbench-1-1.tmp"), "half").unwrap();
    write_results(&out, &sample::results(), "").unwrap();
    assert!(!out.join(".ctxbench-1-1.tmp").exists() && out.join(MARKER).exists());
    assert_eq!(names(tmp.path()), ["out"]);
}

#[test]
fn a_name_that_an_earlier_process_of_our_number_left_is_passed_over() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    write_results(&out, &sample::results(), "").unwrap();
    let (new, old) = (format!(".out.new-{}", std::process::id()), former_name());
    fs::create_dir(tmp.path().join(&new)).unwrap();
    fs::create_dir(tmp.path().join(&old)).unwrap();
    fs::write(tmp.path().join(&old).join("notes.txt"), "mine").unwrap();
    write_results(&out, &sample::results(), "").unwrap();
    assert_eq!(names(tmp.path()), [new, old.clone(), "out".into()]);
    assert_eq!(fs::read_to_string(tmp.path().join(old).join("notes.txt")).unwrap(), "mine");
}

fn former_name() -> String {
    format!(".out.old-{}", std::process::id())
}

#[test]
fn what_has_only_to_be_removed_is_and_what_may_be_of_people_is_told() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let at = |name: &str| tmp.path().join(name);
    // Of one that replaced an empty folder, and of three that wrote what others had left.
    fs::create_dir(at(".out.old-123")).unwrap();
    fs::create_dir(at(".out.interrupted.new-123")).unwrap();
    fs::create_dir(at(".out.interrupted-2.new-123")).unwrap();
    // Not ours: another folder of results, and names that only look alike.
    for other in [".outer.new-1", ".out.interrupted-x.new-1", ".out.interrupted.old-1"] {
        fs::create_dir(at(other)).unwrap();
    }
    fs::create_dir(at(".out.old-124")).unwrap();
    fs::write(at(".out.old-124/notes.txt"), "mine").unwrap();
    let notes = restore(&out).unwrap();
    assert!(notes.len() == 1 && notes[0].contains(".out.old-124 was left"), "{notes:?}");
    let left = [".out.interrupted-x.new-1", ".out.interrupted.old-1", ".out.old-124"];
    assert_eq!(names(tmp.path()), [&left[..], &[".outer.new-1"]].concat());
}

#[test]
fn former_results_on_their_way_out_are_never_without_their_marker() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    write_results(&out, &sample::results(), "").unwrap();
    let old = tmp.path().join(".out.old-123");
    fs::rename(&out, &old).unwrap();
    let going = set_aside(&out, &old).unwrap();
    assert!(!old.exists() && going.join(MARKER).exists());
    // As a kill leaves it, in the middle.
    fs::remove_file(going.join(MARKER)).unwrap();
    assert_eq!(restore(&out).unwrap(), Vec::<String>::new());
    assert_eq!(names(tmp.path()), Vec::<String>::new());
}

#[test]
fn a_folder_that_is_just_being_made_is_not_taken_for_a_leftover() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let over = std::sync::atomic::AtomicBool::new(false);
    let is_over = || over.load(std::sync::atomic::Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                restore(&out).unwrap();
                // Others get their turn.
                (0..200_000).for_each(|i| {
                    std::hint::black_box(i);
                });
            }
        });
        for _ in 0..40 {
            let mut new = Placing::into_folder(&out).unwrap();
            let made = new.begin().unwrap();
            assert!(made.is_dir(), "it was removed in the moment in which it was made");
            drop(new);
            let _ = fs::remove_dir(made);
        }
        over.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}
