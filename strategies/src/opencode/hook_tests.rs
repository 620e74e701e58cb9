//! Effects of a plugin on a compaction (docs/sources/opencode.md §3.2.5, §3.3). Scale as in
//! `tests.rs`: 1,680 tokens are usable.

use ctxbench_core::block::BlockKind::{self, Base, Marker, Summary, User};
use ctxbench_core::request::Request;

use super::tests::{last, play, using};
use crate::testing::{Answer, Played, Script, calls, kinds, text_answer, too_long, user};

fn full(answer: Answer) -> Answer {
    using(answer, 1_680)
}

fn two_turns(replies: Vec<Answer>) -> Script {
    Script::new(vec![user("1", "one"), user("2", "two")], replies)
}

/// Runs two turns. Each fills the window, so that the second summary follows the first.
fn twice(spec: &str) -> Played {
    let script = two_turns(vec![
        full(text_answer("done 1")),
        text_answer("going on 1"),
        full(text_answer("done 2")),
        text_answer("going on 2"),
    ])
    .summaries(vec![text_answer("first summary"), text_answer("second summary")]);
    play(spec, script)
}

fn summary_prompts(p: &Played) -> Vec<String> {
    let text = |r: &&Request| r.blocks.last().unwrap().text.to_string();
    p.summaries().iter().map(text).collect()
}

#[test]
fn context_stands_behind_the_template() {
    let (plain, hooked) = (
        summary_prompts(&twice("opencode")),
        summary_prompts(&twice("opencode:hook_context=Name the port")),
    );
    assert_eq!(hooked.len(), 2);
    for (plain, hooked) in plain.iter().zip(&hooked) {
        assert_eq!(*hooked, format!("{plain}\n\nName the port"));
    }
    // 1.3 sends the conversation as messages, and the prompt alone at the end.
    let (plain, hooked) = (
        summary_prompts(&twice("opencode@1.3")),
        summary_prompts(&twice("opencode@1.3:hook_context=Name the port")),
    );
    assert_eq!(hooked[0], format!("{}\n\nName the port", plain[0]));
}

#[test]
fn a_prompt_replaces_the_template_and_forgets_the_summary_before() {
    assert!(summary_prompts(&twice("opencode"))[1].contains("first summary"));
    let spec = "opencode:hook_prompt=Say where we are,hook_context=Name the port";
    for text in summary_prompts(&twice(spec)) {
        assert!(text.starts_with("Say where we are\n\nThis is the conversation"), "{text}");
        assert!(text.contains("[User]: ") && text.contains("done "), "{text}");
        assert!(!text.contains("first summary") && !text.contains("Name the port"), "{text}");
    }
    assert_eq!(
        summary_prompts(&twice("opencode@1.3:hook_prompt=Say where we are"))[0],
        "Say where we are"
    );
}

#[test]
fn nobody_asks_to_go_on_where_a_plugin_says_no() {
    // The turn ends with the summary, so the next request belongs to the next message.
    let p = twice("opencode:autocontinue=false");
    let samples = p.samples();
    assert_eq!(samples.len(), 2);
    assert_eq!(kinds(samples[1]), [Base, Marker, Summary, User]);
    assert_eq!(twice("opencode").samples().len(), 4);
    // The agent stops even in the middle of its work.
    let script = |spec: &str| {
        let call = full(calls("", "c1", "read", "{}"));
        play(spec, two_turns(vec![call, text_answer("read"), text_answer("done")]))
    };
    assert_eq!(kinds(script("opencode:autocontinue=false").samples()[1]).last(), Some(&User));
    assert_ne!(kinds(script("opencode").samples()[1]).last(), Some(&User));
}

#[test]
fn a_prompt_that_is_sent_again_needs_nobody_to_ask() {
    // The refused message itself is repeated, regardless of the plugin.
    for spec in ["opencode", "opencode:autocontinue=false"] {
        let replies = vec![text_answer("done 1"), too_long(2_100, 2_000), text_answer("done 2")];
        let p = play(spec, two_turns(replies));
        assert_eq!(kinds(last(&p)), [Base, Marker, Summary, BlockKind::ReplayedUser], "{spec}");
        assert!(p.failures().is_empty());
    }
}
