//! Counters under the names of the APIs.

use std::borrow::Cow;

use crate::formats::prelude::*;

/// Returns what changes the price of a call, from its `usage` and the response around it. Names of
/// the standard terms count as none.
pub(in super::super) fn terms(
    usage: &Map<String, Value>,
    response: &Map<String, Value>,
) -> Box<Billing> {
    const STANDARD: &[&str] =
        &["", "standard", "default", "auto", "global", "not_available", "none"];
    let told = |key| str_of(usage, key).or(str_of(response, key));
    let term = |key| told(key).filter(|term| !STANDARD.contains(term)).map(Into::into);
    let searches = object_in(usage, "server_tool_use").get("web_search_requests");
    let items = || objects(response, "output").filter(|item| is_search(item)).count() as u64;
    let billing = Billing {
        speed: term("speed"),
        tier: term("service_tier"),
        region: term("inference_geo"),
        web_searches: searches.and_then(tokens).unwrap_or_else(items),
        // Gateways such as OpenRouter tell it.
        told_usd: cost(usage.get("cost")),
        ..Billing::default()
    };
    billing.into()
}

/// Returns whether an item of the Responses API is a search of the web. Opening what it found is free.
pub(in super::super) fn is_search(item: &Map<String, Value>) -> bool {
    let action = str_of(object_in(item, "action"), "type");
    str_of(item, "type") == Some("web_search_call") && action.is_none_or(|kind| kind == "search")
}

/// Returns the block of a compaction by the provider in the content of a reply.
pub(in super::super) fn compaction_in(content: Option<&Value>) -> Option<&Map<String, Value>> {
    let mut blocks = content?.as_array()?.iter().filter_map(Value::as_object);
    blocks.rfind(|b| str_of(b, "type") == Some("compaction"))
}

/// Returns the requests that the provider made inside a call before its answer
/// (`usage.iterations`), and makes the counters of the reply those of the answer alone. `summary` is
/// the block of a compaction in the content of the reply.
pub(in super::super) fn take_inside(
    usage: Option<&Map<String, Value>>,
    summary: Option<&Map<String, Value>>,
    reply: &mut RecordingReply,
) -> Vec<(View, StepKind)> {
    let all = usage.into_iter().flat_map(|u| objects(u, "iterations"));
    let all: Vec<_> = all.filter_map(|i| Some((i, counters(i)?))).collect();
    let kind = |i: &Map<String, Value>| string(i, "type").unwrap_or_default();
    let answer = all.iter().rposition(|(i, _)| kind(i) == "message");
    let Counters { billing: of_call, write_1h: long, .. } =
        reply.counters.clone().unwrap_or_default();
    let inside = Billing { web_searches: 0, call_id: None, told_usd: None, ..*of_call.clone() };
    let compaction = |reply: Option<Box<RecordingReply>>| {
        let counted = reply.as_ref().and_then(|r| r.counters.as_ref().ok());
        let compaction = RecordingCompaction {
            pre_tokens: counted.map(Counters::prompt),
            trigger: Some(Trigger::Auto),
            summary: summary.and_then(|block| string(block, "content")),
            reply,
            ..RecordingCompaction::default()
        };
        (View::Both, StepKind::Compaction(compaction))
    };
    let mut steps = Vec::new();
    for (n, (i, counters)) in all.into_iter().enumerate() {
        if Some(n) == answer {
            // The lifetimes may stand in the sum alone.
            let write_1h = counters.write_1h.or(long);
            reply.counters = Ok(Counters { billing: of_call.clone(), write_1h, ..counters });
            continue;
        }
        let kind = kind(i);
        let call = of_call.call_id.as_ref().map(|id| format!("{id} {kind} {n}"));
        let counters =
            Counters { billing: inside.clone().into(), ..counters }.called(call.as_deref());
        let response = reply.response.as_deref().map(|of| format!("{of} {kind} {n}"));
        let request = RecordingReply {
            model: string(i, "model").or(reply.model.clone()),
            counters: Ok(counters),
            ..RecordingReply::new(response, Vec::new())
        };
        steps.push(match kind.as_str() {
            "compaction" => compaction(Some(Box::new(request))),
            _ => (View::Calls, StepKind::Reply(request)),
        });
    }
    if steps.is_empty() && summary.is_some() {
        steps.push(compaction(None));
    }
    steps
}

/// Names of the tokens read from the cache, and of those written to it.
const READ: &[&str] = &[
    "cache_read_input_tokens",
    "cached_tokens",
    "prompt_cache_hit_tokens",
    "cached_input_tokens",
    "cache_read_tokens",
];
const WRITTEN: &[&str] =
    &["cache_creation_input_tokens", "cache_write_input_tokens", "cache_write_tokens"];

/// Returns the counters of a `usage`, or `None` if it contains no prompt tokens.
///
/// Accepts both APIs. OpenAI's prompt includes the tokens read from the cache, Anthropic's does
/// not. Fields that proxies add under the other API's names are accepted.
pub(in super::super) fn counters(usage: &Map<String, Value>) -> Option<Counters> {
    let has = |name: &str| usage.get(name).is_some_and(|v| !v.is_null());
    let within = |outer: &str, name: &str| usage.get(outer)?.as_object()?.get(name);
    let (input, output) = if has("prompt_tokens") {
        ("prompt_tokens", "completion_tokens")
    } else if has("input_tokens") {
        ("input_tokens", "output_tokens")
    } else {
        return None;
    };
    let lived = |lifetime: &str| within("cache_creation", lifetime).and_then(tokens);
    let [short, long] = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"].map(lived);
    let own = ["cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"];
    let anthropic = input == "input_tokens" && own.into_iter().any(has);
    let mut flat = Cow::Borrowed(usage);
    let mut named_or_nested = |names: &[&'static str], nested: &'static str| {
        names.iter().copied().find(|name| has(name)).unwrap_or_else(|| {
            let details = ["prompt_tokens_details", "input_tokens_details"];
            let value = details.into_iter().find_map(|outer| within(outer, nested));
            flat.to_mut().insert(nested.into(), value.cloned().unwrap_or_default());
            nested
        })
    };
    let read = named_or_nested(READ, "cached_tokens");
    let written = named_or_nested(WRITTEN, "cache_write_tokens");
    let all = Counters::read(&flat, [input, read, written, output]);
    let all = Counters { billing: terms(usage, usage), ..all };
    if anthropic {
        // Some gateways tell the lifetimes without their sum.
        let sum = [short, long].into_iter().flatten().fold(0, u64::saturating_add);
        let write = if all.write == 0 { sum } else { all.write };
        return Some(Counters { write, write_1h: long, ..all });
    }
    Some(all.of_whole_prompt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(usage: Value) -> Option<(u64, u64, u64, u64)> {
        let c = counters(usage.as_object().unwrap())?;
        Some((c.input, c.read, c.write, c.output))
    }

    #[test]
    fn each_api_has_its_names() {
        let chat = json!({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}});
        assert_eq!(read(chat), Some((40, 60, 0, 7)));
        let responses = json!({"input_tokens": 100, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 64}});
        assert_eq!(read(responses), Some((36, 64, 0, 7)));
        let written = json!({"input_tokens": 2_600, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 2_000, "cache_write_tokens": 400}});
        assert_eq!(read(written), Some((200, 2_000, 400, 7)));
        let anthropic = json!({"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 10, "output_tokens": 5});
        assert_eq!(read(anthropic), Some((3, 90, 10, 5)));
        let deepseek =
            json!({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 1});
        assert_eq!(read(deepseek), Some((6, 4, 0, 1)));
        // A proxy that reports Anthropic's cache under OpenAI's names.
        let proxy = json!({"prompt_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 20, "completion_tokens": 1});
        assert_eq!(read(proxy), Some((30, 50, 20, 1)));
        assert_eq!(read(json!({"total_tokens": 5})), None);
        assert_eq!(read(json!({"prompt_tokens": null})), None);
    }

    #[test]
    fn what_is_no_number_of_tokens_is_told() {
        let usage = json!({"prompt_tokens": -4, "completion_tokens": "x"});
        let c = counters(usage.as_object().unwrap()).unwrap();
        let told: Vec<String> = c.wrong.into_iter().map(|w| w.told).collect();
        assert_eq!(told, ["prompt_tokens is -4", "completion_tokens is \"x\""]);
        let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": -1}});
        let c = counters(usage.as_object().unwrap()).unwrap();
        assert_eq!(c.wrong[0].told, "cached_tokens is -1");
        let long = json!({"input_tokens": 1, "cache_creation_input_tokens": 8, "cache_creation": {"ephemeral_1h_input_tokens": 8.0}});
        assert_eq!(counters(long.as_object().unwrap()).unwrap().is_long(), Some(true));
    }
}
