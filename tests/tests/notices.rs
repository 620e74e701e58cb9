//! THIRD-PARTY-NOTICES.md names every crate that the program is linked with, at its version.

use std::path::Path;
use std::process::Command;

#[test]
fn every_linked_crate_has_its_notice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let notices = std::fs::read_to_string(root.join("THIRD-PARTY-NOTICES.md")).unwrap();
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(root).args(["tree", "--offline", "--locked", "--package", "ctxbench-harness"]);
    tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let out = tree.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines = String::from_utf8(out.stdout).unwrap();
    let mut linked = 0;
    for line in lines.lines().filter(|l| !l.is_empty() && !l.starts_with("ctxbench-")) {
        let mut words = line.split_whitespace();
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        // What runs in the compiler is not in the program.
        if line.contains("(proc-macro)") {
            continue;
        }
        linked += 1;
        let entry = format!("[{name} {}]", version.trim_start_matches('v'));
        assert!(notices.contains(&entry), "{entry} is missing: run .ci/notices and commit");
    }
    assert!(linked > 100, "{lines}");
}

#[test]
fn licences_that_may_be_linked_are_those_that_the_notices_tell() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |file: &str| -> toml::Table {
        std::fs::read_to_string(root.join(file)).unwrap().parse().unwrap()
    };
    let (about, deny) = (read("about.toml"), read("deny.toml"));
    assert_eq!(about["accepted"], deny["licenses"]["allow"]);
    assert_eq!(about["targets"], deny["graph"]["targets"]);
}
