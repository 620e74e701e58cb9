use ctxbench_session::{Entry, RecordedUsage};

use super::super::testing::{counted, database, describe, import, times};
use super::*;

fn costs(entries: &[Entry]) -> Vec<(Option<&str>, String)> {
    let call = |e: &'_ Entry| match e {
        Entry::RecordedCall(c) => Some(c.clone()),
        _ => None,
    };
    let of = |usage: &RecordedUsage| format!("{:.5}", usage.billing.told_usd.unwrap());
    let calls = entries.iter().filter(|e| call(e).is_some());
    calls
        .map(|e| {
            let Entry::RecordedCall(c) = e else { unreachable!() };
            assert!(c.usage.is_cost_only());
            (c.agent.as_deref(), of(&c.usage))
        })
        .collect()
}

#[test]
fn a_database_gives_sessions_with_subagents_compactions_and_costs() {
    let (_folder, path) = database("crush/port.sql");
    let all = import("crush", &Source::at(&path));
    let [one, other] = all.as_slice() else { panic!("{} sessions", all.len()) };
    assert_eq!(describe(&other.session), ["user: Hello"]);
    let s = &one.session;
    let header = (&*s.header.id, &*s.header.title, s.header.model.as_deref());
    let id = "0f0f0f0f-0000-4000-8000-00000000000d";
    assert_eq!(header, (id, "Port of server.ts", Some("claude-sonnet-4-5")));
    let expected = [
        "user: Which port does server.ts use?",
        "model: (The port is probably a constant in server.ts.sig) + I will read server.ts. + \
         view[toolu_1]{\"file_path\":\"server.ts\"} + agent[toolu_2]{\"prompt\":\"Look for other ports\"}",
        "c2$$toolu_2/user: Look for other ports",
        "c2$$toolu_2/model: No other ports.",
        "result[toolu_1]: <file>\n     1|export const port = 8443;\n</file>",
        "result[toolu_2]: No other ports.",
        "model: server.ts listens on port 8443.",
        "compaction: None None Some(\"The user asked for the port of server.ts; it is 8443.\")",
        "user: And which file sets it in tests?",
        "model: test/setup.ts sets it.",
        "c2$$toolu_2/call: 0",
        "call: 0",
    ];
    assert_eq!(describe(s), expected);
    // No reply has counters. The session's 0.1094 include the 0.003 of the subagent.
    assert!(counted(s).iter().all(Option::is_none));
    let expected = [(Some("c2$$toolu_2"), "0.00300".to_string()), (None, "0.10640".to_string())];
    assert_eq!(costs(&s.entries), expected);
    assert_eq!(times(s), [0, 2_000, 3_000, 4_000, 3_000, 3_000, 5_000, 50_000, 60_000, 62_000]);
    assert!(one.warnings.is_empty(), "{:?}", one.warnings);
}

#[test]
fn a_real_database_of_an_older_version_is_read() {
    let (_folder, path) = database("crush/dbos-transact-golang.sql");
    let loaded = import("crush", &Source::at(&path)).remove(0);
    let told = describe(&loaded.session);
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!(told[0], "user: I have instructions for you in @CLI.md");
    assert!(told[2].starts_with("result[call_8QwDvIn4thiNS4LhQnnpykFo]: <file>"), "{told:?}");
    assert_eq!(loaded.session.header.model.as_deref(), Some("gpt-5"));
    assert_eq!(costs(&loaded.session.entries), [(None, "0.02035".to_string())]);
}
