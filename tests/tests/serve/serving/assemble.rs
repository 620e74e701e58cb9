//! Whole replies out of events.

use serde_json::{Value, json};

/// Puts a whole reply together from its events, as a client would, and nothing but them.
pub fn assembled(wire: &str, events: &[(String, String)]) -> Value {
    let data = |e: &(String, String)| serde_json::from_str::<Value>(&e.1).unwrap();
    match wire {
        "anthropic-messages" => {
            let mut message = data(&events[0])["message"].clone();
            let mut inputs: Vec<String> = Vec::new();
            for e in events.iter().map(data) {
                let index = e["index"].as_u64().unwrap_or(0) as usize;
                match e["type"].as_str().unwrap() {
                    "content_block_start" => {
                        message["content"].as_array_mut().unwrap().push(e["content_block"].clone());
                        inputs.push(String::new());
                    }
                    "content_block_delta" => {
                        let d = &e["delta"];
                        let block = &mut message["content"][index];
                        for key in ["text", "thinking", "signature"] {
                            if let Some(more) = d[key].as_str() {
                                block[key] =
                                    format!("{}{more}", block[key].as_str().unwrap()).into();
                            }
                        }
                        inputs[index] += d["partial_json"].as_str().unwrap_or("");
                    }
                    "content_block_stop" if !inputs[index].is_empty() => {
                        message["content"][index]["input"] =
                            serde_json::from_str(&inputs[index]).unwrap();
                    }
                    "message_delta" => {
                        for key in ["stop_reason", "stop_sequence"] {
                            message[key] = e["delta"][key].clone();
                        }
                        for (key, told) in e["usage"].as_object().unwrap() {
                            message["usage"][key] = told.clone();
                        }
                    }
                    _ => {}
                }
            }
            message
        }
        "gemini" => {
            let mut parts: Vec<Value> = Vec::new();
            for chunk in events.iter().map(data) {
                let part = chunk["candidates"][0]["content"]["parts"][0].clone();
                let joins = |l: &&mut Value| {
                    l["text"].is_string()
                        && part["text"].is_string()
                        && l["thought"] == part["thought"]
                };
                match parts.last_mut().filter(joins) {
                    None => parts.push(part),
                    Some(last) => {
                        let text = format!(
                            "{}{}",
                            last["text"].as_str().unwrap(),
                            part["text"].as_str().unwrap()
                        );
                        for (key, value) in part.as_object().unwrap() {
                            last[key] = value.clone();
                        }
                        last["text"] = text.into();
                    }
                }
            }
            let mut whole = data(events.last().unwrap());
            whole["candidates"][0]["content"]["parts"] = parts.into();
            whole
        }
        "openai-responses" => {
            let mut response = data(&events[0])["response"].clone();
            for e in events.iter().map(data) {
                let index = e["output_index"].as_u64().unwrap_or(0) as usize;
                let at = |key: &str| e[key].as_u64().unwrap_or(0) as usize;
                let append = |to: &mut Value, key: &str| {
                    to[key] =
                        format!("{}{}", to[key].as_str().unwrap(), e["delta"].as_str().unwrap())
                            .into()
                };
                let output = &mut response["output"];
                match e["type"].as_str().unwrap() {
                    "response.output_item.added" => {
                        output.as_array_mut().unwrap().push(e["item"].clone())
                    }
                    "response.content_part.added" => {
                        output[index]["content"].as_array_mut().unwrap().push(e["part"].clone())
                    }
                    "response.reasoning_summary_part.added" => {
                        output[index]["summary"].as_array_mut().unwrap().push(e["part"].clone())
                    }
                    "response.output_text.delta" => {
                        append(&mut output[index]["content"][at("content_index")], "text")
                    }
                    "response.reasoning_summary_text.delta" => {
                        append(&mut output[index]["summary"][at("summary_index")], "text")
                    }
                    "response.function_call_arguments.delta" => {
                        append(&mut output[index], "arguments")
                    }
                    "response.output_item.done" if !output[index]["status"].is_null() => {
                        output[index]["status"] = "completed".into()
                    }
                    "response.completed" => {
                        for key in ["status", "usage", "incomplete_details"] {
                            response[key] = e["response"][key].clone();
                        }
                    }
                    _ => {}
                }
            }
            response
        }
        _ => {
            let (last, chunks) = events.split_last().unwrap();
            assert_eq!(last.1, "[DONE]");
            let first = data(&chunks[0]);
            let mut whole = json!({"id": first["id"], "created": first["created"], "model": first["model"], "object": "chat.completion"});
            let (mut content, mut calls, mut finish) =
                (String::new(), Vec::<Value>::new(), Value::Null);
            for c in chunks.iter().map(data) {
                let Some(choice) = c["choices"].get(0) else {
                    whole["usage"] = c["usage"].clone();
                    continue;
                };
                content += choice["delta"]["content"].as_str().unwrap_or("");
                for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    let index = call["index"].as_u64().unwrap() as usize;
                    if index == calls.len() {
                        let mut begun = call.clone();
                        begun.as_object_mut().unwrap().remove("index");
                        calls.push(begun);
                        continue;
                    }
                    let function = &mut calls[index]["function"];
                    let more = call["function"]["arguments"].as_str().unwrap();
                    function["arguments"] =
                        format!("{}{more}", function["arguments"].as_str().unwrap()).into();
                }
                finish = choice["finish_reason"].clone();
            }
            let message = json!({"role": "assistant", "content": content, "tool_calls": calls});
            whole["choices"] = json!([{"index": 0, "finish_reason": finish, "message": message}]);
            whole
        }
    }
}
