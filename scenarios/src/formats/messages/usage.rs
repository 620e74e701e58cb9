//! Counters as the APIs name them.

use serde_json::{Map, Value};

use super::super::recording::Counters;

/// The counters of a `usage`; `None` where it has none of a prompt.
///
/// OpenAI's prompt contains what was read from the cache, Anthropic's does not. What proxies add to
/// the one under the names of the other is understood.
pub(in super::super) fn counters(usage: &Map<String, Value>) -> Option<Counters> {
    let has = |name: &str| usage.get(name).is_some_and(|v| !v.is_null());
    let within = |outer: &str, name: &str| usage.get(outer)?.as_object()?.get(name).cloned();
    let (input, output) = if has("prompt_tokens") {
        ("prompt_tokens", "completion_tokens")
    } else if has("input_tokens") {
        ("input_tokens", "output_tokens")
    } else {
        return None;
    };
    let anthropic = input == "input_tokens"
        && (has("cache_read_input_tokens") || has("cache_creation_input_tokens"));
    let read = ["cache_read_input_tokens", "cached_tokens", "prompt_cache_hit_tokens"]
        .iter()
        .find_map(|n| usage.get(*n).cloned())
        .or_else(|| within("prompt_tokens_details", "cached_tokens"))
        .or_else(|| within("input_tokens_details", "cached_tokens"));
    let mut flat = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        flat.insert(name.to_string(), value.unwrap_or_default());
    };
    put(input, usage.get(input).cloned());
    put(output, usage.get(output).cloned());
    put("read", read);
    put("write", usage.get("cache_creation_input_tokens").cloned());
    let all = Counters::read(&flat, [input, "read", "write", output]);
    if anthropic {
        let long = within("cache_creation", "ephemeral_1h_input_tokens");
        let long = long.and_then(|n| n.as_u64()).map(|n| n > 0);
        return Some(Counters { long: long.filter(|_| all.write > 0), ..all });
    }
    Some(all.of_whole_prompt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        let anthropic = json!({"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 10, "output_tokens": 5});
        assert_eq!(read(anthropic), Some((3, 90, 10, 5)));
        let deepseek =
            json!({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 1});
        assert_eq!(read(deepseek), Some((6, 4, 0, 1)));
        // A proxy that counts Anthropic's cache in OpenAI's names.
        let proxy = json!({"prompt_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 20, "completion_tokens": 1});
        assert_eq!(read(proxy), Some((30, 50, 20, 1)));
        assert_eq!(read(json!({"total_tokens": 5})), None);
        assert_eq!(read(json!({"prompt_tokens": null})), None);
    }

    #[test]
    fn what_is_no_number_of_tokens_is_told() {
        let usage = json!({"prompt_tokens": -4, "completion_tokens": "x"});
        let c = counters(usage.as_object().unwrap()).unwrap();
        assert_eq!(c.wrong.map(|w| w.told).as_deref(), Some("prompt_tokens is -4"));
        let long = json!({"input_tokens": 1, "cache_creation_input_tokens": 8, "cache_creation": {"ephemeral_1h_input_tokens": 8}});
        assert_eq!(counters(long.as_object().unwrap()).unwrap().long, Some(true));
    }
}
