//! Tool definitions in the shape of a wire.

use serde_json::{Value, json};

use super::models::Wire;

/// The definitions of a session (`name`, `description`, `input_schema`) as a wire wants them; anything of another shape stays as it
/// is. Meant for building [`crate::request::Tools`] once per run, whose bytes are then sent and billed unchanged.
pub fn tool_definitions(wire: Wire, definitions: &[Value]) -> Vec<Value> {
    definitions.iter().map(|d| translate(wire, d).unwrap_or_else(|| d.clone())).collect()
}

fn translate(wire: Wire, d: &Value) -> Option<Value> {
    let (name, schema) = (d.get("name")?, d.get("input_schema")?);
    let description = d.get("description").cloned().unwrap_or_else(|| "".into());
    match wire {
        Wire::AnthropicMessages => None,
        Wire::OpenaiResponses => Some(json!({"type": "function", "name": name, "description": description, "parameters": schema})),
        Wire::OpenaiChat => Some(json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wire_gets_its_own_shape_and_foreign_ones_stay() {
        let own = json!({"name": "read", "description": "d", "input_schema": {"type": "object"}});
        let foreign = json!({"type": "web_search"});
        let given = [own.clone(), foreign.clone()];
        assert_eq!(tool_definitions(Wire::AnthropicMessages, &given), given);
        let chat = tool_definitions(Wire::OpenaiChat, &given);
        assert_eq!(chat[0]["function"]["parameters"], own["input_schema"]);
        assert_eq!(chat[1], foreign);
        assert_eq!(tool_definitions(Wire::OpenaiResponses, &given)[0]["parameters"], own["input_schema"]);
    }
}
