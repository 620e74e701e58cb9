//! Names that are known only when the program runs, kept for as long as it runs.

use std::collections::BTreeSet;
use std::sync::Mutex;

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The name for as long as this process runs. Each is kept once; meant for the few names of
/// strategies and of what they do.
pub fn kept(name: &str) -> &'static str {
    let Ok(mut names) = NAMES.lock() else { return Box::leak(name.into()) };
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.into());
    names.insert(new);
    new
}
