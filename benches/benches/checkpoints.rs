//! Checkpoints by edit tools and by shadow git: time per prompt with one edited file and time per
//! restore, with 1, 4 and 16 times the files. Edit checkpoints should scale with the edited files,
//! shadow git with all files.

#![allow(missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ctxbench_kit::checkpoint::{EditCheckpoints, ShadowGit, Snapshots, git_version};

/// Number of files in the smallest project, with a hundred lines each.
const FILES: usize = 100;
const TIMES: [usize; 3] = [1, 4, 16];
/// Message of every `expect`.
const WRITABLE: &str = "a new temporary folder is writable";

fn content(file: usize, version: usize) -> String {
    (0..100)
        .map(|l| {
            let state = if l == version { "edited" } else { "as it was" };
            format!("line {l} of file {file}, {state}\n")
        })
        .collect()
}

fn project(dir: &Path, files: usize) {
    for f in 0..files {
        let folder = dir.join(format!("d{}", f % 16));
        std::fs::create_dir_all(&folder).expect(WRITABLE);
        std::fs::write(folder.join(format!("f{f}.txt")), content(f, usize::MAX)).expect(WRITABLE);
    }
}

/// Runs a prompt with one edit and returns the number of its checkpoint.
fn prompt(snapshots: &mut dyn Snapshots, root: &Path, n: usize, files: usize) -> u64 {
    let (f, path) = (n % files, format!("d{}/f{}.txt", n % files % 16, n % files));
    let number = snapshots.begin("edit", 0).expect(WRITABLE);
    snapshots.step_begins().expect(WRITABLE);
    snapshots.before_edit(&path).expect(WRITABLE);
    std::fs::write(root.join(&path), content(f, n)).expect(WRITABLE);
    snapshots.step_ends().expect(WRITABLE);
    number
}

fn open(name: &str, root: &Path, store: &Path) -> Box<dyn Snapshots> {
    match name {
        "edit-tools" => Box::new(EditCheckpoints::open(root, store).expect(WRITABLE)),
        _ => Box::new(ShadowGit::open(root, store).expect(WRITABLE)),
    }
}

fn kinds() -> Vec<&'static str> {
    if git_version().is_none() {
        println!("skipping shadow git: git is not installed");
        return vec!["edit-tools"];
    }
    vec!["edit-tools", "shadow-git"]
}

fn checkpoints(c: &mut Criterion) {
    let mut group = c.benchmark_group("checkpoints");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    for name in kinds() {
        for times in TIMES {
            let files = FILES * times;
            let temp = tempfile::tempdir().expect(WRITABLE);
            let root = temp.path().join("files");
            project(&root, files);
            let mut snapshots = open(name, &root, &temp.path().join("store"));
            let mut n = 0;
            group.bench_function(BenchmarkId::new(format!("{name}/prompt"), files), |b| {
                b.iter(|| {
                    n += 1;
                    prompt(&mut *snapshots, &root, n, files)
                });
            });
            group.bench_function(BenchmarkId::new(format!("{name}/restore"), files), |b| {
                b.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        n += 1;
                        let to = prompt(&mut *snapshots, &root, n, files);
                        let begin = Instant::now();
                        snapshots.restore(to, 0).expect(WRITABLE);
                        spent += begin.elapsed();
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, checkpoints);
criterion_main!(benches);
