//! A long scripted session: one working day in the code base of a web shop.
//!
//! The story (what is asked, said, called) is data in the folder of the scenario; tool outputs come
//! from a virtual repository that the edits of the story change. No clock and no randomness, so
//! that measurements on the session can be repeated.

mod builder;
mod code;
mod diff;
mod domain;
mod facts;
mod json;
mod out_data;
mod out_ops;
mod out_tests;
mod outputs;
mod rng;
mod rounds;
#[cfg(test)]
mod rounds_tests;
mod script;
mod template;
#[cfg(test)]
mod tests;
mod tools;
mod vfs;

use builder::Builder;
use json::Object;

const SYSTEM: &str = include_str!("../../data/login-bug-marathon/system.txt");
const MEMORY: &str = include_str!("../../data/login-bug-marathon/agents.md");
const STORY: [&str; 4] = [
    include_str!("../../data/login-bug-marathon/story-1-login.txt"),
    include_str!("../../data/login-bug-marathon/story-2-money.txt"),
    include_str!("../../data/login-bug-marathon/story-3-stock.txt"),
    include_str!("../../data/login-bug-marathon/story-4-release.txt"),
];

/// The session `login-bug-marathon` as JSON lines; the same bytes on every call.
pub fn session_jsonl() -> String {
    let mut builder = begun("login-bug-marathon", "A login bug and the long day after it", 200_000);
    for part in STORY {
        builder.play(script::parse(part));
    }
    builder.finish()
}

/// A session made by rule (`rounds::PLANS`) as JSON lines, if there is one of that name; the same
/// bytes on every call.
pub fn generated_jsonl(id: &str) -> Option<String> {
    let plan = rounds::PLANS.iter().find(|plan| plan.id == id)?;
    let mut builder = begun(plan.id, plan.title, plan.window);
    builder.play(plan.blocks());
    Some(builder.finish())
}

/// Ids of the sessions made by rule.
pub fn generated_ids() -> Vec<&'static str> {
    rounds::PLANS.iter().map(|plan| plan.id).collect()
}

/// A session of the shop with its header, system prompt, tools and memory.
fn begun(id: &str, title: &str, window: u64) -> Builder {
    let mut builder = Builder::new();
    builder.line(
        Object::new()
            .with("type", "session")
            .with("version", 1)
            .with("id", id)
            .with("title", title)
            .with("context_window", window),
    );
    builder.line(Object::new().with("type", "system").with("text", SYSTEM.trim_end()));
    builder
        .line(Object::new().with("type", "tools").with_raw("definitions", &tools::definitions()));
    builder.line(
        Object::new()
            .with("type", "memory")
            .with("path", "AGENTS.md")
            .with("text", MEMORY.trim_end()),
    );
    builder
}
