//! The list of models in each provider's shape.

use ctxbench_core::model::{self, Model};
use ctxbench_provider::wire::{self, Api};
use serde_json::Value;

fn models_of(api: Api) -> impl Iterator<Item = &'static Model> {
    model::catalogue().iter().filter(move |m| wire::for_model(m).api == api)
}

/// Lists all models of a provider's API; `window` replaces their windows, tokens.
pub(super) fn list(api: Api, window: Option<u64>) -> Value {
    (api.model_list)(models_of(api).map(|m| (api.model)(m, window)).collect())
}

/// One model.
pub(super) fn find(api: Api, name: &str, window: Option<u64>) -> Option<Value> {
    models_of(api).find(|m| *m.name == *name).map(|m| (api.model)(m, window))
}
