//! The program itself starts. This test is also why `cargo test` builds it, which the end-to-end
//! tests use.

use std::process::Command;

#[test]
fn says_its_name_and_refuses_nonsense() {
    let run = |arg: &str| Command::new(env!("CARGO_BIN_EXE_ctxbench")).arg(arg).output().unwrap();
    let version = run("--version");
    assert!(version.status.success());
    assert_eq!(
        String::from_utf8(version.stdout).unwrap().trim(),
        concat!("ctxbench ", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(run("frobnicate").status.code(), Some(2));
}
