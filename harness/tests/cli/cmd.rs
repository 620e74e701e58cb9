//! Commands with their exit codes and messages: `tests/cmd/*.trycmd`.
//!
//! `TRYCMD=overwrite cargo test --test cli cmd::` writes the current messages into the files.

use crate::common;

#[test]
fn commands_print_the_documented_messages() {
    trycmd::TestCases::new()
        .register_bin("ctxbench", common::binary().as_path())
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .case("tests/cmd/*.trycmd");
}
