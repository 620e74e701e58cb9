use super::super::testing::{self, counted, describe, import, recorded};
use super::*;

const CHILD: &str = "0f0f0f0f-0000-4000-8000-00000000000f";

/// Entries before and after those of the subagent.
const ENTRIES: [&str; 9] = [
    "user: Which port does server.ts use? + export const port = 8443;\n",
    "model: (The port is probably a constant in server.ts.sig) + I will read server.ts. + \
     read_file[toolu_1]{\"path\":\"repo/server.ts\"} + \
     spawn_agent[toolu_2]{\"label\":\"Look for other ports\",\"message\":\"Look for other ports\"}",
    "result[toolu_1]: export const port = 8443;\n",
    "result[toolu_2]: {\"session_id\":\"0f0f0f0f-0000-4000-8000-00000000000f\",\
     \"output\":\"No other ports.\"}",
    "model: server.ts listens on port 8443.",
    // 9 + 14,000 + 120 + 40.
    "compaction: Some(14169) None Some(\"The user asked for the port of server.ts; it is 8443.\")",
    "user: And which file sets it in tests?",
    "model: test/setup.ts sets it.",
    // The rest of the sum: 57 − 9 − 9 = 39, for the first reply and the compaction.
    "call: 20",
];

#[test]
fn a_thread_has_the_counters_of_its_turns_and_the_rest_in_parts() {
    let loaded = import("zed", &Source::at(&recorded("zed/thread.json"))).remove(0);
    let s = &loaded.session;
    assert_eq!(
        (&*s.header.title, s.header.started.as_deref()),
        ("Port of server.ts", Some("2025-11-28T16:00:00.000Z"))
    );
    let told = describe(s);
    assert_eq!(told[..9], ENTRIES);
    assert_eq!(told[9..], ["call: 19"]);
    let calls = [None, Some([9, 14_000, 120, 40]), Some([9, 0, 9_300, 30])];
    assert_eq!(counted(s), calls);
    let rest = s.entries.iter().filter_map(|e| match e {
        ctxbench_session::Entry::RecordedCall(c) => Some(c.usage.clone()),
        _ => None,
    });
    // 28,120 − 14,000 read, 23,420 − 120 − 9,300 written, 280 − 40 − 30 out.
    let sums = rest.fold([0; 4], |[i, r, w, o], u| {
        [i + u.input, r + u.cache_read, w + u.cache_write, o + u.output]
    });
    assert_eq!(sums, [39, 14_120, 14_000, 210]);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn a_database_gives_threads_with_their_subagents() {
    let (_folder, path) = testing::database("zed/threads.sql");
    let all = import("zed", &Source::at(&path));
    let [one] = all.as_slice() else { panic!("{} threads", all.len()) };
    assert_eq!(one.session.header.id, "0f0f0f0f-0000-4000-8000-00000000000e");
    let told = describe(&one.session);
    let child = ["user: Look for other ports", "model: No other ports."];
    assert_eq!(told[..3], ENTRIES[..3]);
    assert_eq!(told[3..5], child.map(|line| format!("{CHILD}/{line}")));
    assert_eq!(told[5..11], ENTRIES[3..9]);
    // The subagent's only call.
    assert!(counted(&one.session).contains(&Some([3_000, 0, 0, 5])));
}
