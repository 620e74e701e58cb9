use ctxbench_session::{Entry, Trigger};

use super::super::testing::{counted, describe, import, recorded, times};
use super::*;

const SESSION: &str = "kimi-code/session_0f0f0f0f-0000-4000-8000-000000000009";

#[test]
fn a_session_has_its_calls_its_compaction_and_its_title() {
    let path = recorded(&format!("{SESSION}/agents/main/wire.jsonl"));
    let source = Source::at(&path);
    let loaded = import("kimi-code", &source).remove(0);
    let s = &loaded.session;
    let header = (&*s.header.id, &*s.header.title, s.header.model.as_deref());
    let id = "session_0f0f0f0f-0000-4000-8000-000000000009";
    assert_eq!(header, (id, "Port of server.ts", Some("moonshot-ai/kimi-k2.7-code")));
    let told = describe(s);
    assert!(told[1].starts_with("tools: [{\"description\":\"Read a file\""), "{}", told[1]);
    let expected = [
        "user: Which port does server.ts use?",
        "model: (The port is probably a constant in server.ts.) + I will read server.ts. + \
         Read[Read_0]{\"path\":\"server.ts\"}",
        "result[Read_0]: export const port = 8443;\n",
        "model: server.ts listens on port 8443.",
        // 267 + 24,064 + 12.
        "compaction: Some(24343) None \
         Some(\"[summary]\\nThe user asked for the port of server.ts; it is 8443.\")",
        "user: And which file sets it in tests?",
        "model: test/setup.ts sets it.",
    ];
    assert_eq!(
        (&*told[0], &told[2..]),
        ("system: You are Kimi Code CLI.", &expected.map(String::from)[..])
    );
    let calls = [[9_431, 14_848, 0, 42], [267, 24_064, 0, 12], [9_600, 14_848, 0, 9]];
    assert_eq!(counted(s), calls.map(Some));
    let compaction = s.entries.iter().find_map(|e| match e {
        Entry::RecordedCompaction(c) => Some(c.clone()),
        _ => None,
    });
    let compaction = compaction.unwrap();
    assert_eq!(compaction.trigger, Some(Trigger::Manual));
    let usage = compaction.usage.unwrap();
    assert_eq!([usage.input, usage.cache_read, usage.output], [1_411, 24_064, 137]);
    assert_eq!(times(s).last(), Some(&61_000));
    assert_eq!((FORMAT.parts)(&source).len(), 1);
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}

#[test]
fn a_real_session_is_read_whole() {
    let path = recorded("kimi-code/agent-sessions-wire.jsonl");
    let loaded = import("kimi-code", &Source::at(&path)).remove(0);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let calls = counted(&loaded.session);
    let inputs: Vec<u64> = calls.iter().flatten().map(|[input, ..]| *input).collect();
    assert_eq!(inputs, [9_431, 267, 155, 310, 647]);
    let told = describe(&loaded.session);
    // 647 + 40,448 + 304, without the request for the summary.
    assert!(told.iter().any(|l| l.starts_with("compaction: Some(41399) None Some(\"")), "{told:?}");
}
