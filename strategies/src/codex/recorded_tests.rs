//! Recorded results of single functions of Codex CLI.

use super::items::kept_users;
use super::rules::{
    OutputPolicy, active_tokens, bytes_estimate, cut_message, cut_output, cut_record,
    effective_limit, encrypted_estimate, estimate_item,
};
use super::*;
use crate::testing::check;
use ctxbench_core::prelude::*;
use serde_json::{Value, json};

/// Recorded versions, as folder and release.
const VERSIONS: [(&str, Release); 3] =
    [("0.63.0", Release::V063), ("0.104.0", Release::V104), ("0.169.0", Release::V169)];

/// Checks a function against the recordings of some versions, given by their index.
fn check_versions(versions: &[usize], name: &str, function: impl Fn(Release, &Value) -> Value) {
    for (version, release) in versions.iter().map(|i| VERSIONS[*i]) {
        check(&format!("codex/{version}/{name}.json"), |input| function(release, input));
    }
}

fn number(input: &Value, name: &str) -> u64 {
    input[name].as_u64().unwrap()
}

fn policy(input: &Value) -> OutputPolicy {
    match input["policy"].get("bytes") {
        Some(bytes) => OutputPolicy::Bytes(bytes.as_u64().unwrap()),
        None => OutputPolicy::Tokens(number(&input["policy"], "tokens")),
    }
}

/// Returns the tokens of items. A recording has the size of an item's text, the size of its JSON
/// form, or its tokens, whichever the version counts.
fn tokens(release: Release, items: &Value) -> Vec<u64> {
    let of = |item: &Value| {
        if let Some(bytes) = item["json_bytes"].as_u64() {
            return bytes_estimate(bytes);
        }
        if let Some(tokens) = item["tokens"].as_u64() {
            return tokens;
        }
        let filler = |name: &str| "x".repeat(number(item, name) as usize);
        let kind: BlockKind = serde_json::from_value(item["kind"].clone()).unwrap();
        let mut draft = Draft::text(kind, Role::User, filler("bytes"));
        if kind == BlockKind::Output {
            let id = filler("id_bytes").into();
            draft.call = Some(Arc::new(CallRef { id, name: "".into() }));
        }
        estimate_item(release, &[draft.build(MessageId(0), vec![])])
    };
    items.as_array().unwrap().iter().map(of).collect()
}

/// Returns the user messages that a compaction keeps, oldest first, each with its index and its text
/// parts.
fn retained_user_messages(
    release: Release,
    messages: &[&str],
    budget: u64,
) -> Vec<(usize, Vec<String>)> {
    let block = |(i, text): (usize, &&str)| {
        Draft::text(BlockKind::User, Role::User, *text)
            .build(MessageId(i as u32), Origins::default())
    };
    let blocks: Vec<_> = messages.iter().enumerate().map(block).collect();
    let texts = |m: Vec<Arc<Block>>| {
        (m[0].message.0 as usize, m.iter().flat_map(|b| b.parts()).map(str::to_string).collect())
    };
    kept_users(release, &blocks, budget, false).into_iter().map(texts).collect()
}

#[test]
fn outputs_are_cut_as_recorded() {
    check_versions(&[0, 2], "output_truncation", |release, i| {
        json!(cut_output(release, i["text"].as_str().unwrap(), policy(i)))
    });
    check_versions(&[1], "record_truncation", |_, i| {
        json!(cut_record(i["text"].as_str().unwrap(), policy(i)))
    });
    check_versions(&[2], "middle_cut", |release, i| {
        let text = i["text"].as_str().unwrap();
        json!(cut_message(release, text, number(i, "remaining_tokens")))
    });
}

#[test]
fn user_messages_are_kept_as_recorded() {
    check_versions(&[1, 2], "retained_user_messages", |release, i| {
        let texts: Vec<&str> =
            i["messages"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
        let kept = retained_user_messages(release, &texts, number(i, "cap_tokens"));
        kept.into_iter().map(|(_, parts)| json!(parts)).collect()
    });
}

#[test]
fn sizes_and_limits_are_as_recorded() {
    check_versions(&[0, 1, 2], "history_estimate", |release, i| {
        let items: u64 = tokens(release, &i["items"]).iter().sum();
        json!(bytes_estimate(number(i, "base_bytes")) + items)
    });
    check_versions(&[0, 2], "effective_limit", |release, i| {
        let configured = i["configured_limit"].as_u64();
        json!(effective_limit(release, number(i, "context_window"), configured))
    });
}

#[test]
fn compactions_start_as_recorded() {
    check_versions(&[0, 1, 2], "trigger", |release, i| {
        let encrypted = i["encrypted_reasoning_bytes_before_last_user"].as_array().unwrap();
        let reasoning = encrypted.iter().map(|n| encrypted_estimate(n.as_u64().unwrap())).sum();
        let items = tokens(release, &i["items_after_last_model_item"]).iter().sum();
        let active = active_tokens(release, number(i, "last_total"), items, reasoning);
        let configured = i["configured_limit"].as_u64();
        let limit = effective_limit(release, number(i, "context_window"), configured);
        let compact = limit.is_some_and(|l| active >= l);
        json!({"active": active, "limit": limit, "compact": compact})
    });
}
