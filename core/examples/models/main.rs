//! Generates the table of models from LiteLLM's price file and our own list.
//!
//! ```text
//! models                    writes core/src/model/models.toml from listed.toml and litellm/prices.json
//! models cut FILE VERSION   writes litellm/prices.json: the required part of FILE, the price file of that version
//! ```
//!
//! `.ci/litellm VERSION` fetches the file and runs both commands.

mod listed;
mod litellm;
mod table;

use std::path::Path;

type Outcome<T> = Result<T, String>;

fn main() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let listed = listed::read(&text(&folder.join("listed.toml"))?)?;
    let prices = folder.join("litellm/prices.json");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let rules = listed::rules(&text(&folder.join("rules.toml"))?)?;
            let prices = litellm::read(&text(&prices)?)?;
            write(&folder.join("models.toml"), &table::write(&listed, &rules, &prices)?)
        }
        ["cut", file, version] => {
            write(&prices, &litellm::cut(&text(Path::new(file))?, version, &listed.entries())?)
        }
        _ => Err("models [cut FILE VERSION]".to_string()),
    }
}

fn text(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
