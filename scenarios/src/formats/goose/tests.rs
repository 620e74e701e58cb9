use ctxbench_session::Entry;

use super::super::testing::{counted, database, describe, import, recorded, times};
use super::*;

const ENTRIES: [&str; 9] = [
    "user: Which port does server.ts use?",
    "model: I will read server.ts. + (The port is probably a constant in server.ts.sig) + \
     developer__shell[toolu_1]{\"command\":\"cat server.ts\"} + \
     delegate[toolu_2]{\"instructions\":\"Look for other ports\"}",
    "result[toolu_1]: export const port = 8443;\n",
    "result![toolu_2]: No such subagent.",
    "model: server.ts listens on port 8443.",
    // 14,129 + 40.
    "compaction: Some(14169) None Some(\"The user asked for the port of server.ts; it is 8443.\")",
    "user: And which file sets it in tests?",
    "model: test/setup.ts sets it.",
    "call: 300",
];

#[test]
fn a_database_gives_sessions_with_their_calls() {
    let (_folder, path) = database("goose/port.sql");
    let all = import("goose", &Source::at(&path));
    let ids: Vec<&str> = all.iter().map(|l| &*l.session.header.id).collect();
    assert_eq!(ids, ["20251127_1", "20251128_1", "20251128_2"]);
    let s = &all[1].session;
    let header = (&*s.header.title, s.header.model.as_deref(), s.header.context_window);
    assert_eq!(header, ("Port of server.ts", Some("claude-sonnet-4-5"), Some(200_000)));
    assert_eq!(describe(s), ENTRIES);
    // Whole prompts: 14,010 = 14,000 + 10; 14,129 = 14,000 + 120 + 9; 9,309 = 9,300 + 9.
    let calls = [[10, 0, 14_000, 60], [9, 14_000, 120, 40], [9, 0, 9_300, 30]];
    assert_eq!(counted(s), calls.map(Some));
    let compaction = s.entries.iter().find_map(|e| match e {
        Entry::RecordedCompaction(c) => c.usage.clone(),
        _ => None,
    });
    // 14,149 = 14,120 + 29.
    let usage = compaction.unwrap();
    assert_eq!([usage.input, usage.cache_read, usage.output], [29, 14_120, 150]);
    assert_eq!(usage.billing.told_usd, Some(0.0065));
    assert_eq!(
        &**usage.billing.call_id.as_ref().unwrap(),
        "20251128_1 3 1764345650 150 29+14120+0"
    );
    assert_eq!(times(s), [0, 1_000, 2_000, 2_000, 11_000, 50_000, 60_000, 61_000]);
    assert!(all[1].warnings.is_empty(), "{:?}", all[1].warnings);
    // Less than the tokens read and written.
    assert_eq!(counted(&all[2].session), [Some([1_000, 400, 800, 5])]);
    assert!(all[2].warnings[0].contains("a session of 20251128_1"), "{:?}", all[2].warnings);
    let older = &all[0].session;
    assert_eq!(older.header.title, "An older session");
    assert_eq!(describe(older), ["user: Hello", "model: Hi.", "call: 0"]);
    assert_eq!(counted(older), [None]);
}

#[test]
fn exports_and_older_files_have_no_counters() {
    let s = import("goose", &Source::at(&recorded("goose/20251128_1.json"))).remove(0).session;
    assert_eq!((&*s.header.id, &*s.header.title), ("20251128_1", "Port of server.ts"));
    let told = describe(&s);
    // Without the ledger, the file does not say which calls were one reply.
    assert_eq!((told.len(), &*told[1]), (11, "model: I will read server.ts."));
    assert_eq!((&*told[7], &*told[10]), (&*ENTRIES[5].replace("Some(14169)", "None"), "call: 0"));
    assert!(counted(&s).iter().all(Option::is_none));
    let s = import("goose", &Source::at(&recorded("goose/older.jsonl"))).remove(0).session;
    assert_eq!((&*s.header.title, describe(&s).len()), ("Port of server.ts", 5));
}

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
