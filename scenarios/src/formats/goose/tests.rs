use ctxbench_session::Entry;

use super::super::testing::import;
use super::*;

#[test]
fn a_message_has_the_call_of_its_time() {
    let call = |at: i64| Call {
        at,
        is_compaction: at == 50,
        is_taken: false,
        reply: RecordingReply::new(at.to_string(), vec![]),
    };
    let mut calls = [2, 5, 5, 50, 60].map(call);
    let mut of = |second: i64, has_calls: bool| {
        let found = call_of(&mut calls, second, has_calls)?;
        Some((found.reply.response.clone()?, std::mem::replace(&mut found.is_taken, true)))
    };
    assert_eq!(of(1, true), None);
    assert_eq!(of(61, false), None);
    assert_eq!(of(1, false), Some(("2".into(), false)));
    assert_eq!(of(4, true), Some(("2".into(), true)));
    // Two calls within one second, in order.
    let both = [of(3, false), of(9, true), of(9, true)].map(Option::unwrap);
    assert_eq!(both.map(|(_, taken)| taken), [false, false, true]);
    assert_eq!(of(49, false), Some(("60".into(), false)));
}

/// Two machines count their sessions from the same day.
#[test]
fn the_cost_of_a_session_is_known_by_its_first_message() {
    let name = |text: &str| {
        let message =
            json!({"role": "user", "created": 5, "content": [{"type": "text", "text": text}]});
        let info = json!({"id": "20251128_1", "working_dir": "/w", "accumulated_cost": 0.1,
            "conversation": [message]});
        let text = info.to_string();
        let s = import("goose", &Source::of_bytes(text.as_bytes(), "s.json")).remove(0).session;
        let Some(Entry::RecordedCall(paid)) = s.entries.last() else { panic!("no cost") };
        paid.usage.billing.call_id.clone().unwrap()
    };
    assert_eq!(name("Fix the parser"), name("Fix the parser"));
    assert_ne!(name("Fix the parser"), name("Port of the shop"));
}
