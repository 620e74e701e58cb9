//! Rebuilds the package when a built-in scenario's files change: the directory is embedded by a
//! macro that cannot say so itself.

fn main() {
    println!("cargo::rerun-if-changed=data");
}
