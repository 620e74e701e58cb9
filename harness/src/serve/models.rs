//! The list of models in each provider's shape.

use ctxbench_core::model::{self, Model};
use ctxbench_provider::format;
use ctxbench_provider::wire::Family;
use serde_json::Value;

fn of(family: Family) -> impl Iterator<Item = &'static Model> {
    model::catalogue().iter().filter(move |m| format(m.wire).family() == family)
}

/// All models of a provider's API; `window` in tokens stands in the place of the model's own.
pub(super) fn list(family: Family, window: Option<u64>) -> Value {
    let wire = format(family.wire());
    wire.model_list(of(family).map(|m| wire.model(m, window)).collect())
}

/// One model.
pub(super) fn one(family: Family, name: &str, window: Option<u64>) -> Option<Value> {
    of(family).find(|m| *m.name == *name).map(|m| format(family.wire()).model(m, window))
}
