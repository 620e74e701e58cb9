//! The whole `ctxbench` command with one more strategy.

mod newest_turns;

fn main() -> std::process::ExitCode {
    ctxbench_harness::main(&[&newest_turns::NewestTurns])
}
