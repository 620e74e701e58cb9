//! The whole `ctxbench` command with a strategy of one's own beside the others.

mod newest_turns;

fn main() -> std::process::ExitCode {
    ctxbench_harness::main(&[newest_turns::DESCRIPTOR])
}
