//! Names that are only known at run time, kept until the program ends.

use std::collections::BTreeSet;
use std::sync::Mutex;

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns the name with a static lifetime; equal names share one allocation, which is never freed.
/// Meant for a few names of strategies and mechanisms.
pub fn intern(name: &str) -> &'static str {
    let Ok(mut names) = NAMES.lock() else { return Box::leak(name.into()) };
    if let Some(known) = names.get(name) {
        return known;
    }
    let new: &'static str = Box::leak(name.into());
    names.insert(new);
    new
}
