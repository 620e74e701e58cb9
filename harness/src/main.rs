//! The `ctxbench` command.

fn main() {}
