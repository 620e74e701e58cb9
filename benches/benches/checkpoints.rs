//! Two ways of keeping a session's files, by edit tools and by shadow git: time of a prompt with
//! one edited file, time of going back, and bytes on disk, at 1, 4 and 16 times the files. The
//! first should grow with the edits, the second with the files.

#![allow(missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ctxbench_benches::table;
use ctxbench_kit::checkpoint::{EditCheckpoints, Keep, ShadowGit, Snapshots, git_version};

/// Files of the smallest project; a hundred lines each.
const FILES: usize = 100;
const TIMES: [usize; 3] = [1, 4, 16];
/// Prompts, each of which edits one file.
const PROMPTS: usize = 20;
/// Why nothing here can fail.
const WORKS: &str = "a fresh temporary folder can be written to";

fn content(file: usize, version: usize) -> String {
    (0..100)
        .map(|l| {
            format!(
                "line {l} of file {file}, {}\n",
                if l == version { "edited" } else { "as it was" }
            )
        })
        .collect()
}

fn project(dir: &Path, files: usize) {
    for f in 0..files {
        let folder = dir.join(format!("d{}", f % 16));
        std::fs::create_dir_all(&folder).expect(WORKS);
        std::fs::write(folder.join(format!("f{f}.txt")), content(f, usize::MAX)).expect(WORKS);
    }
}

/// One prompt with one edit; the number of its checkpoint.
fn prompt(way: &mut dyn Snapshots, root: &Path, n: usize, files: usize) -> u64 {
    let (f, path) = (n % files, format!("d{}/f{}.txt", n % files % 16, n % files));
    let number = way.begin("edit", 0).expect(WORKS);
    way.step_begins().expect(WORKS);
    way.before_edit(&path).expect(WORKS);
    std::fs::write(root.join(&path), content(f, n)).expect(WORKS);
    way.step_ends().expect(WORKS);
    number
}

fn open(name: &str, root: &Path, store: &Path) -> Box<dyn Snapshots> {
    match name {
        "edit-tools" => Box::new(EditCheckpoints::open(root, store, Keep::default()).expect(WORKS)),
        _ => Box::new(ShadowGit::open(root, store).expect(WORKS)),
    }
}

fn ways() -> Vec<&'static str> {
    if git_version().is_none() {
        println!("shadow git is skipped: git is not installed");
        return vec!["edit-tools"];
    }
    vec!["edit-tools", "shadow-git"]
}

fn checkpoints(c: &mut Criterion) {
    let mut sizes = Vec::new();
    let mut group = c.benchmark_group("checkpoints");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    for name in ways() {
        for times in TIMES {
            let files = FILES * times;
            let temp = tempfile::tempdir().expect(WORKS);
            let root = temp.path().join("files");
            project(&root, files);
            let mut way = open(name, &root, &temp.path().join("store"));
            let begin = Instant::now();
            let first =
                (0..PROMPTS).map(|n| prompt(&mut *way, &root, n, files)).min().expect(WORKS);
            let prompts = begin.elapsed();
            let begin = Instant::now();
            let back = way.restore(first, 0).expect(WORKS);
            let restore = begin.elapsed();
            let stored = way.stored().expect(WORKS);
            sizes.push(vec![
                name.to_string(),
                files.to_string(),
                format!("{:.2}", prompts.as_secs_f64() * 1e3 / PROMPTS as f64),
                format!("{:.2}", restore.as_secs_f64() * 1e3),
                back.files.len().to_string(),
                stored.content_bytes.to_string(),
                stored.disk_bytes.to_string(),
            ]);
            let mut n = PROMPTS;
            group.bench_function(BenchmarkId::new(format!("{name}/prompt"), files), |b| {
                b.iter(|| {
                    n += 1;
                    prompt(&mut *way, &root, n, files)
                });
            });
            group.bench_function(BenchmarkId::new(format!("{name}/restore"), files), |b| {
                b.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        n += 1;
                        let to = prompt(&mut *way, &root, n, files);
                        let begin = Instant::now();
                        way.restore(to, 0).expect(WORKS);
                        spent += begin.elapsed();
                    }
                    spent
                });
            });
        }
    }
    group.finish();
    let title = format!("{PROMPTS} prompts with an edit each, then back to the first");
    print!(
        "{}",
        table(
            &title,
            &[
                "way",
                "files",
                "ms per prompt",
                "ms to go back",
                "files back",
                "bytes kept",
                "bytes on disk"
            ],
            &sizes
        )
    );
}

criterion_group!(benches, checkpoints);
criterion_main!(benches);
