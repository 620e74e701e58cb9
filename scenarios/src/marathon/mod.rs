//! A long scripted session: one working day in the code base of a web shop.
//!
//! The story (what is asked, said, called) is data in the folder of the scenario; tool outputs come
//! from a virtual repository that the edits of the story change. No clock and no randomness, so
//! that measurements on the session can be repeated.

mod builder;
mod code;
mod diff;
mod domain;
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
use ctxbench_core::session::{Entry, Header, Session};

const SYSTEM: &str = include_str!("../../data/login-bug-marathon/system.txt");
const MEMORY: &str = include_str!("../../data/login-bug-marathon/agents.md");
const STORY: [&str; 4] = [
    include_str!("../../data/login-bug-marathon/story-1-login.txt"),
    include_str!("../../data/login-bug-marathon/story-2-money.txt"),
    include_str!("../../data/login-bug-marathon/story-3-stock.txt"),
    include_str!("../../data/login-bug-marathon/story-4-release.txt"),
];

/// The id of the session that the story tells.
const MARATHON: &str = "login-bug-marathon";

/// A session of that name: the story, or one made by rule (`rounds::ROUNDS`); the same on every
/// call.
pub fn generated(id: &str) -> Option<Session> {
    if id == MARATHON {
        return Some(shop(id, 200_000, STORY.into_iter().flat_map(script::parse).collect()));
    }
    let plan = rounds::ROUNDS.iter().find(|plan| plan.id == id)?;
    Some(shop(plan.id, plan.window, plan.blocks()))
}

/// Ids of these sessions.
pub fn generated_ids() -> Vec<&'static str> {
    std::iter::once(MARATHON).chain(rounds::ROUNDS.iter().map(|plan| plan.id)).collect()
}

/// A session of the shop: system prompt, tools and memory, then what the blocks tell.
fn shop(id: &str, window: u64, blocks: Vec<script::StoryBlock>) -> Session {
    let header = Header {
        version: crate::jsonl::VERSION,
        id: id.to_owned(),
        context_window: Some(window),
        ..Header::default()
    };
    let extra = serde_json::Map::new;
    let system = SYSTEM.trim_end().to_owned();
    let (path, memory) = ("AGENTS.md".to_owned(), MEMORY.trim_end().to_owned());
    let mut builder = Builder::new(vec![
        Entry::System { text: system, agent: None, extra: extra() },
        Entry::Tools { definitions: tools::definitions(), agent: None, extra: extra() },
        Entry::Memory { path, text: memory, extra: extra() },
    ]);
    builder.play(blocks);
    builder.finish(header)
}
