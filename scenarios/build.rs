//! Rebuilds the package when a file of a built-in scenario changes. The macro that embeds the
//! directory cannot request this itself.

fn main() {
    println!("cargo::rerun-if-changed=data");
}
