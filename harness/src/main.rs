//! The `ctxbench` command.

fn main() -> std::process::ExitCode {
    ctxbench_harness::main(&[])
}
