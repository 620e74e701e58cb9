//! The `ctxbench` command: reads arguments, calls the library, prints.

mod commands;

fn main() -> std::process::ExitCode {
    commands::main()
}
