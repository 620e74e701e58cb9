//! Recorded behaviour of the real programs: our requests must equal theirs, item by item. Cases written
//! by hand are in `tests/data/by-hand`.

use std::path::{Path, PathBuf};

use ctxbench_conform::{Case, CaseError, Difference, replay};
use serde_json::{Value, json};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/conformance").join(name)
}

fn run(path: &Path) -> (usize, Option<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let v = Case::parse(&text, "recorded").and_then(|case| replay(&case)).unwrap();
    (v.matched, v.difference.map(|d| format!("{d:#?}")))
}

#[test]
fn every_recorded_session_is_replayed_request_for_request() {
    let all = ctxbench_util::files::walk(&data("")).unwrap();
    let mut matched = 0;
    for path in &all {
        let (requests, difference) = run(path);
        assert_eq!(difference, None, "{}", path.display());
        matched += requests;
    }
    assert_eq!((all.len(), matched), (97, 477));
}

#[test]
fn cases_by_hand_pass_with_their_own_ending_only() {
    let mut all = ctxbench_util::files::walk(&data("../by-hand")).unwrap();
    all.retain(|path| path.extension().is_some_and(|e| e == "json"));
    assert_eq!(all.len(), 15);
    for path in all {
        let mut case = load(path.to_str().unwrap());
        let name = case["name"].to_string();
        assert_eq!(verdict(&case).unwrap(), None, "{name}");
        if case["outcome"]["final"].is_array() {
            case["outcome"]["final"] = json!(["another"]);
            assert!(verdict(&case).unwrap().is_some(), "{name}");
        }
    }
}

#[test]
fn a_turn_cut_short_with_open_calls_is_not_compacted() {
    let mut case = load("../by-hand/anthropic-sdk/cut-short.json");
    for stop in ["max_tokens", "end_turn", "model_context_window_exceeded", "something_new"] {
        // The requested compaction is skipped: its event is used, and no request follows.
        case["events"][1]["stop_reason"] = stop.into();
        assert_eq!(verdict(&case).unwrap(), None, "{stop}");
    }
}

const CODEX: &str = "codex/0.169.0/a_midturn.json";
const OPENCODE: &str = "opencode/1.18.33/s1_toolloop.json";
const SDK: &str = "anthropic-sdk/python-0.125.0/cross_on_tool_use.json";
const SDK_ERROR: &str = "anthropic-sdk/python-0.125.0/summary_http_400.json";
const SDK_RAISED: &str = "anthropic-sdk/python-0.125.0/summary_starts_with_thinking_error.json";
const SDK_NEW: &str = "anthropic-sdk/python-2.12.0/compact_before_next_turn_after_tool.json";

fn load(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data(name)).unwrap()).unwrap()
}

fn verdict(v: &Value) -> Result<Option<Difference>, CaseError> {
    let case = Case::parse(&v.to_string(), "corrupted");
    case.and_then(|case| replay(&case)).map(|v| v.difference)
}

/// Returns the first difference or the error.
fn corrupted_case(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut v = load(name);
    change(&mut v);
    match verdict(&v) {
        Ok(difference) => difference.map(|d| d.what).expect("a corrupted case must not pass"),
        Err(e) => e.to_string(),
    }
}

fn remove(v: &mut Value, at: &str) {
    let (parent, name) = at.rsplit_once('/').unwrap();
    match v.pointer_mut(parent).unwrap() {
        Value::Object(o) => drop(o.remove(name).unwrap()),
        Value::Array(list) => drop(list.remove(name.parse().unwrap())),
        other => panic!("{at} is in {other}"),
    }
}

fn set_value(v: &mut Value, at: &str, value: Value) {
    let (parent, name) = at.rsplit_once('/').unwrap();
    match v.pointer_mut(parent).unwrap() {
        Value::Object(o) => drop(o.insert(name.into(), value)),
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = value,
        other => panic!("{at} is in {other}"),
    }
}

/// Returns the first difference or the error of a case with another value at a place.
fn with_value(case: &str, at: &str, value: Value) -> String {
    corrupted_case(case, |v| set_value(v, at, value))
}

/// Like [`corrupted_case`] for the usual case.
fn corrupted(change: impl FnOnce(&mut Value)) -> String {
    corrupted_case(CODEX, change)
}

fn list<'a>(v: &'a mut Value, at: &str) -> &'a mut Vec<Value> {
    v.pointer_mut(at).and_then(Value::as_array_mut).unwrap()
}

#[test]
fn a_wrong_outcome_is_refused() {
    for (member, wrong) in [
        ("requests", json!(3)),
        ("tool_calls_executed", json!(["f2.txt"])),
        ("final", json!(["Other words."])),
    ] {
        let said = with_value(SDK, &format!("/outcome/{member}"), wrong);
        assert_eq!(said, format!("outcome: {member}"));
    }
    let other = |v: &mut Value| {
        remove(v, "/outcome/final");
        set_value(v, "/outcome/error", json!("http_400"));
    };
    assert_eq!(corrupted_case(SDK, other), "outcome: error");
    for (case, names) in [
        (SDK_ERROR, ["http_500", "zork", "unexpected_summary_content", "ValueError"]),
        (SDK_RAISED, ["http_400", "zork", "IndexError", "stream_ended_early"]),
    ] {
        for name in names {
            let said = with_value(case, "/outcome/error", name.into());
            assert_eq!(said, "outcome: error", "{name}");
        }
        // The result is neither the last text nor an error, but the text of the reply before the
        // error.
        assert!(
            corrupted_case(case, |v| remove(v, "/outcome/error"))
                .starts_with("outcome: expected exactly one of final, error")
        );
        let words = |v: &mut Value| {
            remove(v, "/outcome/error");
            set_value(v, "/outcome/final", json!([]));
        };
        assert!(corrupted_case(case, words).starts_with("outcome: "));
    }
    for case in [SDK, SDK_ERROR, SDK_NEW] {
        let without = |at: &str| corrupted_case(case, |v| remove(v, at));
        assert!(without("/outcome").contains("required for anthropic-sdk"));
        assert!(without("/outcome/tool_calls_executed").contains("outcome.tool_calls_executed"));
        for (at, wrong, error) in [
            ("/outcome/zork", 1, "outcome: unknown field `zork`"),
            ("/outcome/requests", -1, "outcome: invalid value"),
        ] {
            assert!(with_value(case, at, json!(wrong)).starts_with(error), "{case} {at}");
        }
    }
}

/// Names of the error classes: HTTP errors by status, broken connections by code, errors of the
/// library by cause or exception (docs/sources/anthropic-sdk.md §2.2).
#[test]
fn error_classes_without_cases_are_distinguished() {
    let with = |case: &str, change: &dyn Fn(&mut Value), class: &str| {
        let mut v = load(case);
        change(&mut v);
        v["outcome"]["error"] = class.into();
        verdict(&v).unwrap().map(|d| d.what)
    };
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: &[(&str, Change<'_>, &str)] = &[
        (SDK_ERROR, &|v| v["events"][2]["status"] = 529.into(), "http_529"),
        (
            SDK_ERROR,
            &|v| {
                v["events"][2] =
                    json!({"type": "error", "on": "summary", "code": "stream_ended_early"})
            },
            "stream_ended_early",
        ),
        (SDK_RAISED, &|_| {}, "ValueError"),
        (SDK_RAISED, &|v| v["events"][2]["blocks"] = json!([]), "IndexError"),
        // The request to the main model fails, so there is no second one.
        (
            SDK_ERROR,
            &|v| {
                remove(v, "/events/2");
                remove(v, "/requests/1");
                v["events"][1] = json!({"type": "error", "on": "sample", "status": 401, "code": "authentication_error"});
                v["outcome"]["requests"] = 1.into();
            },
            "http_401",
        ),
    ];
    for (case, change, class) in cases {
        assert_eq!(with(case, change, class), None, "{class}");
        for (_, _, other) in cases.iter().filter(|c| c.2 != *class) {
            assert_eq!(
                with(case, change, other).as_deref(),
                Some("outcome: error"),
                "{class} taken for {other}"
            );
        }
    }
}

/// `until_done` returns the message that the runner received last, even if its history drops it
/// (docs/sources/anthropic-sdk.md §2.2, §2.3).
#[test]
fn a_runner_that_stops_after_a_summary_ends_with_the_message_it_dropped() {
    let stopped = |case: &str, last: Value| {
        let mut v = load(case);
        let (events, requests) =
            (v["events"].as_array().unwrap(), v["requests"].as_array().unwrap());
        let replies = events.iter().filter(|e| e["type"] == "reply").count();
        let (last_event, last_request) = (events.len() - 1, requests.len() - 1);
        remove(&mut v, &format!("/events/{last_event}"));
        remove(&mut v, &format!("/requests/{last_request}"));
        set_value(&mut v, "/settings/max_iterations", json!(replies - 1));
        v["outcome"]["requests"] = last_request.into();
        v["outcome"]["final"] = last;
        verdict(&v).unwrap().map(|d| (d.what, d.got))
    };
    for program in ["python-0.125.0", "typescript-0.124.0"] {
        let case = format!("anthropic-sdk/{program}/cross_on_final_answer.json");
        assert_eq!(stopped(&case, json!(["The final answer is 42."])), None, "{program}");
        assert!(stopped(&case, json!(["Continuing after summary."])).is_some());
    }
    // The message contains a call, which may be named by its type.
    assert_eq!(stopped(SDK, json!(["more"])), None);
    assert_eq!(stopped(SDK, json!(["more", "tool_use"])), None);
    assert_eq!(stopped(SDK, json!(["reading"])).unwrap().0, "outcome: final");
}

/// docs/sources/anthropic-sdk.md §2.3, and §2.2 step 5: only Python distinguishes the two errors.
#[test]
fn summary_without_its_prefix_ends_the_run() {
    let ended = |case: &str, blocks: Value, class: &str| {
        let mut v = load(case);
        let at = v["events"].as_array().unwrap().iter();
        let at = at.clone().position(|e| e["type"] == "summary_reply").unwrap();
        let summary = v["events"][at].as_object_mut().unwrap();
        summary.remove("text");
        summary.insert("blocks".into(), blocks);
        v["events"].as_array_mut().unwrap().truncate(at + 1);
        v["requests"].as_array_mut().unwrap().truncate(2);
        v["outcome"] = json!({"requests": 2, "tool_calls_executed": [], "error": class});
        verdict(&v).unwrap().map(|d| d.what)
    };
    let python = "anthropic-sdk/python-0.125.0/cross_on_final_answer.json";
    let typescript = "anthropic-sdk/typescript-0.124.0/cross_on_final_answer.json";
    let text = json!({"type": "text", "text": "a summary"});
    let others = [
        json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
        json!({"type": "redacted_thinking", "data": "x"}),
        json!({"type": "tool_use", "id": "t", "name": "read", "input": {"path": "f"}}),
    ];
    for other in others {
        for case in [python, typescript] {
            let blocks = json!([other, text]);
            assert_eq!(ended(case, blocks.clone(), "unexpected_summary_content"), None, "{blocks}");
            assert_eq!(ended(case, blocks, "empty_summary").as_deref(), Some("outcome: error"));
        }
    }
    assert_eq!(ended(python, json!([]), "empty_summary"), None);
    assert_eq!(
        ended(python, json!([]), "unexpected_summary_content").as_deref(),
        Some("outcome: error")
    );
    assert_eq!(ended(typescript, json!([]), "unexpected_summary_content"), None);
}

#[test]
fn a_corrupted_case_is_refused() {
    for (at, wrong, difference) in [
        ("/requests/0/items/3/bytes", json!(27), "bytes"),
        ("/requests/1/items/7/sha256", json!("00"), "sha256"),
        ("/requests/0/items/3/kind", json!("file"), "kind"),
        ("/requests/2/phase", json!("pre_turn"), "phase"),
        ("/requests/2/tokens_after", json!(1), "tokens_after"),
    ] {
        assert_eq!(with_value(CODEX, at, wrong), difference);
    }
    for (at, difference) in [("/requests", "number of requests"), ("/requests/0/items", "item")] {
        assert_eq!(corrupted(|v| drop(list(v, at).pop())), difference);
    }
    let request = json!({"purpose": "sample", "tools": true, "items": []});
    let reply = json!({"type": "reply", "text": "x", "usage": {"input_tokens": 1}});
    for (at, more, difference) in [("/requests", request, "request"), ("/events", reply, "events")]
    {
        assert_eq!(corrupted(|v| list(v, at).push(more)), difference);
    }
    for list in ["events", "requests"] {
        let said = with_value(CODEX, &format!("/{list}"), json!([]));
        assert!(said.starts_with(&format!("{list}: expected at least one")), "{said}");
    }
}

#[test]
fn a_request_without_an_answer_is_refused() {
    let all = [
        "codex/0.63.0/probe.json",
        "codex/0.104.0/probe.json",
        CODEX,
        OPENCODE,
        "opencode/1.3.2/s1_toolloop.json",
        SDK,
        SDK_NEW,
    ];
    for case in all {
        let last = |v: &mut Value| {
            let events = list(v, "/events");
            events.truncate(events.iter().rposition(|e| e["type"] == "reply").unwrap());
        };
        assert_eq!(corrupted_case(case, last), "events", "{case}");
    }
}

/// Objects of cases, by their position.
const OBJECTS: &[(&str, &str)] = &[
    (CODEX, "/settings /constants /fixed/0 /fixed/1 /events/0 /events/1 /events/1/usage"),
    (CODEX, "/events/1/calls/0 /requests/0 /requests/2 /requests/0/items/0 /requests/0/items/3"),
    (
        OPENCODE,
        "/settings/model /settings/compaction /events/1/usage /events/1/calls/0 /requests/0",
    ),
    (SDK, "/settings/compaction_control /constants /events/1/usage /outcome /requests/0/items/0"),
    (SDK_NEW, "/events/0 /events/1 /requests/0"),
    (SDK_RAISED, "/events/2/blocks/0 /events/2/blocks/1"),
    (SDK_ERROR, "/events/2"),
    ("opencode/1.18.33/s15_image_overflow.json", "/events/1 /events/3/parts/0 /events/3/parts/2"),
];

#[test]
fn unknown_members_are_refused_everywhere() {
    for (case, places) in OBJECTS {
        for at in places.split(' ') {
            if load(case).pointer(at).is_none_or(|o| !o.is_object()) {
                panic!("{case} has no object at {at}");
            }
            let said = with_value(case, &format!("{at}/zork"), json!(1));
            assert!(said.contains("zork") && (said.contains("unknown")), "{case} {at}: {said}");
        }
    }
    for at in ["/zork", "/events/0/type", "/fixed/0/kind", "/requests/0/items/3/kind"] {
        let said = with_value(CODEX, at, json!("surprise"));
        assert!(said.contains("unknown"), "{at}: {said}");
    }
    assert!(corrupted(|v| v["not_compared"] = json!(["items"])).contains("not_compared"));
    // An object in place of a size, and a policy of two units.
    let marker = with_value(OPENCODE, "/constants/marker/zork", json!(1));
    assert!(marker.starts_with("constants: expected a size"), "{marker}");
    let policy = with_value(CODEX, "/settings/tool_output_policy/tokens", json!(1));
    assert!(policy.starts_with("settings: "), "{policy}");
}

#[test]
fn numbers_of_the_wrong_type_are_refused_with_their_position() {
    let places = [
        (CODEX, "/settings/context_window /settings/auto_compact_token_limit"),
        (CODEX, "/settings/request_max_retries /settings/tool_output_policy/bytes"),
        (CODEX, "/constants/summary_prompt_bytes /fixed/0/bytes /fixed/0/estimate_bytes"),
        (CODEX, "/events/1/usage/input_tokens /events/1/usage/output_tokens"),
        (CODEX, "/events/1/usage/total_tokens /events/1/calls/0/output_bytes"),
        (CODEX, "/requests/0/items/0/bytes /requests/0/items/3/bytes"),
        ("codex/0.63.0/probe.json", "/settings/context_window"),
        (OPENCODE, "/settings/model/context /settings/model/output /constants/marker/bytes"),
        (OPENCODE, "/events/1/usage/prompt_tokens /requests/0/max_tokens /requests/0/items/0/msg"),
        (SDK, "/settings/max_tokens /settings/compaction_control/context_token_threshold"),
        (SDK, "/events/1/usage/cache_read_input_tokens"),
        (SDK_ERROR, "/events/2/status"),
    ];
    let places = places.iter().flat_map(|(case, all)| all.split(' ').map(|at| (*case, at)));
    for (case, at) in places {
        assert!(load(case).pointer(at).is_some(), "{case} {at}");
        for wrong in
            [json!(-1), json!("abc"), json!("12"), json!(1.5), json!(true), json!(u64::MAX)]
        {
            let said = with_value(case, at, wrong.clone());
            let position = at[1..].split('/').take(2).collect::<Vec<_>>();
            let position = match position[..] {
                [list, number] if number.parse::<usize>().is_ok() => format!("{list}[{number}]"),
                [member, ..] => member.to_string(),
                [] => unreachable!(),
            };
            assert!(
                said.starts_with(&position) && said.contains("expected"),
                "{case} {at} = {wrong}: {said}"
            );
            // A size may be a list too, so its error describes both.
            let is_size = at.ends_with("/bytes") || at.ends_with("_prompt_bytes");
            assert!(
                is_size || said.contains(wrong.to_string().trim_matches('"')),
                "{case} {at} = {wrong}: {said}"
            );
        }
    }
    for (case, at, wrong) in [
        (CODEX, "/requests/0/tools", json!(1)),
        (CODEX, "/settings/tool_output_policy", json!({})),
        (CODEX, "/fixed/1/bytes", json!([])),
        (CODEX, "/events/0/text", json!(7)),
        (SDK, "/settings/compaction_control/enabled", json!("yes")),
        (OPENCODE, "/settings/wire", json!("telegraph")),
    ] {
        let said = with_value(case, at, wrong);
        assert!(said.contains("expected"), "{case} {at}: {said}");
    }
}

/// Sizes next to a text must match it, and only texts of the program may be left out.
#[test]
fn contradicting_members_are_refused() {
    let output = with_value(CODEX, "/events/1/calls/0/output_bytes", json!(1));
    assert!(output.contains("output_bytes"), "{output}");
    let left_out = |v: &mut Value| {
        remove(v, "/requests/0/items/3/text");
        set_value(v, "/requests/0/items/3/constant", json!(true));
    };
    assert!(corrupted(left_out).contains("constant"), "the user's text is compared");
    for at in ["constant_bytes", "transcript/bytes", "transcript/parts/0/bytes"] {
        let said = with_value(OPENCODE, &format!("/requests/3/items/1/{at}"), json!(1));
        assert!(said.contains("bytes"), "{at}: {said}");
    }
    let digest = "/requests/3/items/1/transcript/parts/1/sha256";
    assert_eq!(with_value(OPENCODE, digest, json!("00")), "sha256");
    let image = "opencode/1.18.33/s15_image_overflow.json";
    let media = "/requests/1/items/3/parts/2/media";
    assert_eq!(with_value(image, media, json!("image/gif")), "media");
}

#[test]
fn oversized_texts_are_refused_before_they_are_built() {
    let huge = 1_000_000_000_000_u64;
    for text in [
        json!({"repeat": "a", "times": huge}),
        json!({"repeat": "abc", "times": u64::MAX}),
        json!({"lines_from": {"format": "{n}", "from": 0, "to": huge}}),
        json!({"concat": [{"repeat": "a", "times": 60 << 20}, {"repeat": "a", "times": 60 << 20}]}),
        json!({"slice": {"repeat": "a", "times": huge}, "start": 0, "end": 1}),
    ] {
        let said = corrupted(|v| v["events"][0]["text"] = text.clone());
        assert!(said.contains("events[0].text") && said.contains("at most"), "{text}: {said}");
    }
    let is_tools = |f: &Value| f["kind"] == "tools";
    let tools = list(&mut load(CODEX), "/fixed").iter().position(is_tools).unwrap();
    let count = format!("/fixed/{tools}/count");
    for at in ["/constants/summary_prompt_bytes", "/fixed/0/bytes", &count] {
        assert!(with_value(CODEX, at, json!(huge)).contains("expected"), "{at}");
    }
    // Each text is within the limit, but all of them together are not.
    let half = json!({"type": "user", "text": {"repeat": "a", "times": 40 << 20}});
    assert!(corrupted(|v| list(v, "/events").extend([half.clone(), half])).contains("at most"));
}

#[test]
fn disabled_control_does_not_compact() {
    let enabled = "/settings/compaction_control/enabled";
    assert_eq!(with_value(SDK, enabled, json!(false)), "purpose");
}
