use axum::http::HeaderMap;
use ctxbench_scenarios::FaultOn;
use ctxbench_session::{AssistantEntry, Entry, Session, UserEntry};

use super::*;

/// Creates a director for an agent that marks summary requests with a final sentence, in a session
/// with these replies.
fn director(replies: &[&str], faults: &[ProviderFault]) -> SharedDirector {
    let agent = crate::drive::agent::described_with(
        "[tool]\nname = \"sh\"\narguments = {cmd = \"{command}\"}\n\
         [[side]]\npurpose = \"summary\"\nlast = \"sum up\"\n",
    );
    let text = |t: &str| Some(t.into());
    let user = UserEntry { id: "u".into(), text: text("go"), ..Default::default() };
    let said = replies.iter().map(|t| {
        let id = t.to_string();
        Entry::Assistant(AssistantEntry { id, text: text(t), ..Default::default() })
    });
    let entries = std::iter::once(Entry::User(user)).chain(said).collect();
    let plan = DrivePlan::new(&Session { entries, ..Default::default() }, &agent).unwrap();
    SharedDirector::new(Arc::new(plan), &agent, faults)
}

const PATH: &str = "/v1/chat/completions";

fn wire() -> Wire {
    ctxbench_provider::wire::find("openai-chat").unwrap()
}

fn request(id: u64, wire: Wire, path: &str, body: &[u8], prompt: Option<Prompt>) -> Arrived {
    let (path, headers, body) = (path.to_string(), HeaderMap::new(), body.to_vec());
    Arrived { id, wire, path, headers, body, prompt, thinking: false, compact: false }
}

struct RequestInProgress {
    id: u64,
    body: Vec<u8>,
    said: Result<String, ModelError>,
}

fn send(director: &mut SharedDirector, id: u64, words: &str) -> RequestInProgress {
    let body = serde_json::json!({
        "model": "gpt-5.5", "messages": [{"role": "user", "content": words}],
        "tools": [{"type": "function", "function": {"name": "sh", "parameters": {}}}],
    });
    let body = body.to_string().into_bytes();
    let wire = wire();
    let prompt = wire.decode(PATH, &body).unwrap();
    let request = request(id, wire, PATH, &body, Some(prompt.clone()));
    let said = director.answer(&request, &prompt).map(|said| match said {
        ModelAnswer::Parts(parts) => parts.iter().filter_map(Part::as_text).collect(),
        ModelAnswer::Summary(_) => "a summary".to_string(),
    });
    if said.is_ok() {
        director.mark_delivered();
    }
    RequestInProgress { id, body, said }
}

fn over(director: &mut SharedDirector, sent: &RequestInProgress) {
    let reply =
        |text: &String| Reply { parts: vec![Part::Text(text.as_str().into())], ..Reply::default() };
    let prompt = wire().decode(PATH, &sent.body).ok();
    director.saw(RequestOutcome {
        request: request(sent.id, wire(), PATH, &sent.body, prompt),
        http: sent.said.as_ref().map_or(400, |_| 200),
        on_purpose: false,
        outcome: sent.said.as_ref().map(reply).map_err(Clone::clone),
    });
}

/// Returns number, purpose and session id of each exchange.
fn exchanges_of(director: &SharedDirector) -> Vec<(u64, Purpose, Option<String>)> {
    let of = |e: &Exchange| (e.nth, e.purpose, e.key.as_ref().map(|k| k.to_string()));
    director.lock().exchanges.iter().map(of).collect()
}

#[test]
fn requests_that_end_in_another_order_are_kept_in_the_order_of_their_answers() {
    let mut d = director(&["one", "two"], &[]);
    let sent: Vec<RequestInProgress> = ["a", "sum up a", "b", "sum up b"]
        .iter()
        .enumerate()
        .map(|(i, words)| send(&mut d, i as u64, words))
        .collect();
    let said: Vec<&str> = sent.iter().map(|s| s.said.as_deref().unwrap()).collect();
    assert_eq!(said, ["one", "a summary", "two", "a summary"]);
    for i in [3, 2, 0, 1] {
        over(&mut d, &sent[i]);
    }
    let key = |k: &str| Some(k.to_string());
    let want = [
        (1, Purpose::Work, key("one")),
        (1, Purpose::Summary, None),
        (2, Purpose::Work, key("two")),
        (2, Purpose::Summary, None),
    ];
    assert_eq!(exchanges_of(&d), want);
}

#[test]
fn a_fault_is_told_of_the_request_that_it_hit() {
    let fault = ProviderFault { status: Some(500), ..ProviderFault::new(FaultOn::Summary, 1) };
    let mut d = director(&["one"], &[fault]);
    let hit = send(&mut d, 0, "sum up");
    let other = send(&mut d, 1, "a");
    assert_eq!(hit.said.as_ref().unwrap_err().status, 500);
    over(&mut d, &other);
    over(&mut d, &hit);
    let on_purpose: Vec<bool> = d.lock().exchanges.iter().map(|e| e.on_purpose).collect();
    assert_eq!(on_purpose, [true, false]);
    assert_eq!(exchanges_of(&d)[1].2.as_deref(), Some("one"));
}

#[test]
fn what_a_request_is_for_does_not_depend_on_who_refuses_it() {
    let mut d = director(&["one"], &[]);
    let side = Side {
        purpose: Purpose::Title,
        header: Some(["X-Kind".into(), "title".into()]),
        body: None,
        system: None,
        last: None,
        tools: None,
    };
    d.lock().sides.push(side);
    let responses = ctxbench_provider::wire::find("openai-responses").unwrap();
    let path = "/v1/responses";
    let asks = |items: serde_json::Value| {
        let body = serde_json::json!({"model": "gpt-5.5", "input": items}).to_string();
        let prompt = responses.decode(path, body.as_bytes()).unwrap();
        (body.into_bytes(), prompt)
    };
    let user = serde_json::json!({"type": "message", "role": "user", "content": "go"});
    let compacts = asks(serde_json::json!([user, {"type": "compaction_trigger"}]));
    let titles = asks(serde_json::json!([user]));
    for (id, kind, (body, prompt)) in [(0, "none", compacts), (2, "title", titles)] {
        let of = |id| {
            let headers =
                HeaderMap::from_iter([("x-kind".parse().unwrap(), kind.parse().unwrap())]);
            Arrived { headers, ..request(id, responses, path, &body, Some(prompt.clone())) }
        };
        d.answer(&of(id), &prompt).ok().unwrap();
        let request = of(id + 1);
        let outcome = Err(ModelError::invalid("no reply"));
        d.saw(RequestOutcome { request, http: 500, on_purpose: true, outcome });
    }
    let purposes: Vec<Purpose> =
        exchanges_of(&d).into_iter().map(|(_, purpose, _)| purpose).collect();
    assert_eq!(purposes, [Purpose::Summary, Purpose::Summary, Purpose::Title, Purpose::Title]);
}
