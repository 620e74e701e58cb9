use super::*;
use crate::{formats, parse};

const MAX: u64 = u64::MAX;

#[test]
fn counters_that_are_no_numbers_of_tokens_are_told_once() {
    let reply = |n: u32, input: &str| {
        format!(
            r#"{{"type":"user","uuid":"u{n}","parentUuid":"a{}","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"go"}}}}
{{"type":"assistant","uuid":"a{n}","parentUuid":"u{n}","sessionId":"s","requestId":"r{n}","timestamp":"2026-01-01T00:00:02.000Z","message":{{"id":"m{n}","role":"assistant","content":[{{"type":"text","text":"done"}}],"stop_reason":"end_turn","usage":{{"input_tokens":{input},"output_tokens":7.0}}}}}}
"#,
            n - 1
        )
    };
    let told = |inputs: &[&str]| -> Vec<String> {
        let text: String = (1..).zip(inputs).map(|(n, input)| reply(n, input)).collect();
        let s = parse(text.replacen("\"a0\"", "null", 1).as_bytes(), "c.jsonl").unwrap();
        s.warnings.into_iter().filter(|w| w.contains("not a number")).collect()
    };
    assert_eq!(told(&["3", "4.0"]), Vec::<String>::new());
    let expected = [
        "c.jsonl:4: input_tokens is 3.5, which is not a number of tokens; taken as 0; so is one more counter",
    ];
    assert_eq!(told(&["3", "3.5", "-1", "4"]), expected);
    // Numbers that affect the figures are reported first, and the two treatments separately.
    let large = r#"1e23,"cache_read_input_tokens":-1,"cache_creation_input_tokens":"x""#;
    let expected = [
        format!(
            "c.jsonl:4: input_tokens is 1e+23, which is not a number of tokens; taken as {TOKENS}, the largest there is; so is one more counter"
        ),
        "c.jsonl:2: input_tokens is -1, which is not a number of tokens; taken as 0; so are 2 more counters".into(),
    ];
    assert_eq!(told(&["-1", large, "1e24"]), expected);
    assert_eq!(
        told(&["1e23"]),
        [format!(
            "c.jsonl:2: input_tokens is 1e+23, which is not a number of tokens; taken as {TOKENS}, the largest there is"
        )]
    );
}

#[test]
fn importers_leave_out_counters_that_cannot_be() {
    let codex = format!(
        r#"{{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{{"id":"s"}}}}
{{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"go"}}]}}}}
{{"timestamp":"2026-01-01T00:00:02.000Z","type":"response_item","payload":{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"done"}}]}}}}
{{"timestamp":"2026-01-01T00:00:04.000Z","type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{MAX},"cached_input_tokens":9,"output_tokens":{MAX}}},"model_context_window":{MAX}}}}}}}
"#
    );
    let claude = format!(
        r#"{{"type":"user","uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"go"}}}}
{{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","requestId":"r","timestamp":"2026-01-01T00:00:02.000Z","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"done"}}],"stop_reason":"end_turn","usage":{{"input_tokens":{MAX},"cache_read_input_tokens":{MAX},"cache_creation_input_tokens":{MAX},"output_tokens":{MAX}}}}}}}
"#
    );
    let pi = format!(
        r#"{{"type":"session","version":3,"id":"s","timestamp":"2026-01-08T20:00:00.000Z","cwd":"/w"}}
{{"type":"message","timestamp":"2026-01-08T20:00:01.000Z","message":{{"role":"user","content":[{{"type":"text","text":"go"}}],"timestamp":1}}}}
{{"type":"message","timestamp":"2226-01-08T20:00:03.000Z","message":{{"role":"assistant","content":[{{"type":"text","text":"done"}}],"usage":{{"input":{MAX},"output":{MAX},"cacheRead":{MAX},"cacheWrite":{MAX}}},"stopReason":"stop","timestamp":2}}}}
"#
    );
    for (format, text) in [("codex", codex), ("claude-code", claude), ("pi", pi)] {
        let source = formats::Source::of_bytes(text.as_bytes(), "r.jsonl");
        let loaded = formats::by_name(format).unwrap().import_all(&source).unwrap().remove(0);
        let reply = loaded.session.entries.iter().find_map(Entry::as_reply).unwrap();
        assert_eq!(reply.usage, None, "{format}");
        let said = loaded.warnings.join("\n");
        assert!(said.contains("they cannot be right and are left out"), "{format}: {said}");
        let window = loaded.session.header.context_window;
        assert!(format != "codex" || window == Some(TOKENS), "{window:?}");
        assert!(format != "pi" || reply.at == Some(MS), "two centuries later");
        let again = parse(loaded.session.to_jsonl().unwrap().as_bytes(), "r.jsonl");
        assert!(again.is_ok(), "the output of an importer can be read: {again:?}");
    }
}
