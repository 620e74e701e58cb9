//! Writes the JSON Schema of the session format into a folder: `schemas [FOLDER]`.

use std::error::Error;
use std::path::PathBuf;

use ctxbench_session::schema;

fn main() -> Result<(), Box<dyn Error>> {
    let folder =
        PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "docs/schemas".to_string()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("session.schema.json");
    std::fs::write(&path, serde_json::to_string_pretty(&schema::session_line())? + "\n")?;
    println!("{}", path.display());
    Ok(())
}
