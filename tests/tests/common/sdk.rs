//! The official SDKs that `.ci/sdks` installs.

use std::path::{Path, PathBuf};

/// Returns the folder with the SDKs: `CTXBENCH_SDK_DIR`, or `target/sdk`.
///
/// # Panics
///
/// If nothing is installed there.
pub fn folder() -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let folder =
        root.join(std::env::var_os("CTXBENCH_SDK_DIR").unwrap_or_else(|| "target/sdk".into()));
    // `.ci/sdks` writes this file last.
    let installed = folder.join("installed").is_file();
    assert!(installed, "no SDKs in {}: run .ci/sdks", folder.display());
    folder.canonicalize().unwrap()
}

pub fn python(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "venv/Scripts/python.exe" } else { "venv/bin/python" })
}
