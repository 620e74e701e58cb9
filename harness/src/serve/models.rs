//! The list of models in each provider's shape.

use ctxbench_core::provider::{self, Model, Provider};
use serde_json::{Value, json};

use super::route::Family;

fn of(family: Family) -> impl Iterator<Item = &'static Model> {
    provider::catalogue().iter().filter(move |m| (m.provider == Provider::Anthropic) == (family == Family::Anthropic))
}

/// `window` in tokens stands in the place of the model's own.
fn shown(family: Family, m: &Model, window: Option<u64>) -> Value {
    match family {
        // The catalogue does not know when a model came out.
        Family::Anthropic => json!({
            "type": "model", "id": m.name, "display_name": m.name, "created_at": "1970-01-01T00:00:00Z",
            "max_input_tokens": window.unwrap_or(m.window), "max_tokens": m.max_output,
        }),
        Family::Openai => {
            let owner = format!("{:?}", m.provider).to_lowercase();
            json!({"id": m.name, "object": "model", "created": 0, "owned_by": owner})
        }
    }
}

/// All models of a provider's API.
pub(super) fn list(family: Family, window: Option<u64>) -> Value {
    let all: Vec<Value> = of(family).map(|m| shown(family, m, window)).collect();
    match family {
        Family::Anthropic => {
            let id = |v: Option<&Value>| v.map(|v| v["id"].clone());
            json!({"first_id": id(all.first()), "last_id": id(all.last()), "has_more": false, "data": all})
        }
        Family::Openai => json!({"object": "list", "data": all}),
    }
}

/// One model.
pub(super) fn one(family: Family, name: &str, window: Option<u64>) -> Option<Value> {
    of(family).find(|m| *m.name == *name).map(|m| shown(family, m, window))
}
