//! Sessions as scripts of the server's replies.

use ctxbench_agents::serve::ReplyScript;

use super::*;

/// Starts a server that gives the replies of a session.
pub(super) async fn scripted() -> Here {
    let text = include_bytes!("../../data/serve/script.jsonl");
    let session = ctxbench_scenarios::jsonl::read(text, "script.jsonl").unwrap().session;
    let script = ReplyScript::new(&session);
    Here::new(ServeOptions { speaker: Some(Box::new(script)), ..ServeOptions::default() }).await
}

#[tokio::test]
async fn session_script_works_on_every_wire() {
    for (wire, path) in ROUTES {
        let here = scripted().await;
        let mut body = asking(wire, "Read a");
        let first = here.post(path, &body).await;
        let reply = first.reply(wire);
        assert!(
            matches!(&reply.parts[0], Part::Reasoning { text, .. } if &**text == "hm"),
            "{path}: {:?}",
            reply.parts
        );
        assert!(
            matches!(&reply.parts[1], Part::Call(ToolCall { id, .. }) if &**id == "c1"),
            "{path}"
        );
        // A repeated request, as after a broken connection.
        let again = here.post(path, &body).await;
        assert_eq!(again.reply(wire).parts, reply.parts, "{path}");
        let talk = match wire {
            "openai-responses" => "input",
            "gemini" => "contents",
            _ => "messages",
        };
        let more = match wire {
            "anthropic-messages" => vec![
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "out"}]}),
            ],
            "openai-responses" => vec![
                json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}"}),
                json!({"type": "function_call_output", "call_id": "c1", "output": "out"}),
            ],
            "gemini" => vec![
                json!({"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}}]}),
                json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "out"}}}]}),
            ],
            _ => vec![
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]}),
                json!({"role": "tool", "tool_call_id": "c1", "content": "out"}),
            ],
        };
        body[talk].as_array_mut().unwrap().extend(more);
        let second = here.post(path, &body).await.reply(wire);
        assert_eq!(second.text().as_deref(), Some("It says out."), "{path}");
        let last = match wire {
            "gemini" => [("model", "It says out."), ("user", "And now?")]
                .map(|(role, t)| json!({"role": role, "parts": [{"text": t}]})),
            _ => [("assistant", "It says out."), ("user", "And now?")]
                .map(|(role, t)| json!({"role": role, "content": t})),
        };
        body[talk].as_array_mut().unwrap().extend(last);
        let over = here.post(path, &body).await;
        assert_eq!(over.error(wire).kind, ErrorKind::SessionEnd, "{path}");
    }
}
