//! Writes the JSON Schemas of the session and scenario formats into a folder: `schemas [FOLDER]`.

use std::error::Error;
use std::path::PathBuf;

use ctxbench_scenarios::schema;

fn main() -> Result<(), Box<dyn Error>> {
    let folder =
        PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "docs/schemas".to_string()));
    std::fs::create_dir_all(&folder)?;
    for (name, value) in [("session", schema::session()), ("scenario", schema::scenario())] {
        let path = folder.join(format!("{name}.schema.json"));
        std::fs::write(&path, serde_json::to_string_pretty(&value)? + "\n")?;
        println!("{}", path.display());
    }
    Ok(())
}
