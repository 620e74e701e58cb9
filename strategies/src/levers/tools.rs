//! Deferred tools: of a tool of an MCP server the prompt holds its name alone; the model looks the
//! definition up before it calls it for the first time, which is a request of its own
//! (docs/sources/claude-code.md §1.7).

use std::collections::{HashMap, HashSet};

use ctxbench_core::content::ToolCall;
use ctxbench_core::session::{AssistantEntry, Entry, ToolEntry};
use serde_json::{Value, json};

use super::free_id;

/// The tool that looks others up, as Claude Code calls it.
const SEARCH: &str = "ToolSearch";
/// How tools of MCP servers are called: `mcp__SERVER__TOOL`.
const OF_SERVERS: &str = "mcp__";

/// Definitions that are deferred, by window (`None` = the main conversation) and name.
type Deferred = HashMap<Option<String>, HashMap<String, Value>>;

/// The session with its tools of servers deferred.
pub(super) fn deferred(mut entries: Vec<Entry>) -> Vec<Entry> {
    let found = take_definitions(&mut entries);
    if found.values().all(HashMap::is_empty) {
        return entries;
    }
    tell_names(&mut entries, &found);
    let (mut out, mut known) = (Vec::new(), HashSet::new());
    let ids = entries.clone();
    for e in entries {
        match &e {
            Entry::Assistant(a) => {
                let window = of(&found, a.agent.as_deref());
                let mut wanted: Vec<String> = Vec::new();
                for call in a.all_calls() {
                    let name = call.name.to_string();
                    if window.contains_key(&name) && known.insert((a.agent.clone(), name.clone())) {
                        wanted.push(name);
                    }
                }
                if !wanted.is_empty() {
                    out.extend(look_up(&ids, &a.id, a.agent.clone(), &wanted, window));
                }
            }
            Entry::Clear { .. } => known.retain(|(agent, _)| agent.is_some()),
            _ => {}
        }
        out.push(e);
    }
    out
}

/// What is deferred in a window: of its own tools where it has some, else of the session's.
fn of<'a>(found: &'a Deferred, agent: Option<&str>) -> &'a HashMap<String, Value> {
    let own = agent.map(str::to_string);
    found.get(&own).or_else(|| found.get(&None)).unwrap_or(&found[&None])
}

/// Takes the deferred definitions out and puts the tool that finds them in.
fn take_definitions(entries: &mut [Entry]) -> Deferred {
    let mut found = Deferred::from([(None, HashMap::new())]);
    for e in entries {
        let Entry::Tools { definitions, agent, .. } = e else { continue };
        let of_server = |d: &Value| d["name"].as_str().is_some_and(|n| n.starts_with(OF_SERVERS));
        let (gone, mut left): (Vec<Value>, Vec<Value>) =
            std::mem::take(definitions).into_iter().partition(of_server);
        if !gone.is_empty() && left.iter().all(|d| d["name"] != SEARCH) {
            left.push(json!({
                "name": SEARCH,
                "description": "Fetches the definitions of further tools, which can be called \
                    from then on. `select:NAME,NAME` asks for tools by name, words search for them.",
                "input_schema": {
                    "type": "object",
                    "properties": { "query": { "type": "string" } },
                    "required": ["query"],
                },
            }));
        }
        *definitions = left;
        let named = |d: Value| (d["name"].as_str().unwrap_or_default().to_string(), d);
        found.entry(agent.clone()).or_default().extend(gone.into_iter().map(named));
    }
    found
}

/// Every system prompt names what can be looked up.
fn tell_names(entries: &mut Vec<Entry>, found: &Deferred) {
    let words = |agent: Option<&str>| {
        let mut names: Vec<&str> = of(found, agent).keys().map(String::as_str).collect();
        names.sort_unstable();
        (!names.is_empty()).then(|| {
            format!("Tools that {SEARCH} must fetch before they are called:\n{}", names.join("\n"))
        })
    };
    let mut told = false;
    for e in entries.iter_mut() {
        let Entry::System { text, agent, .. } = e else { continue };
        told |= agent.is_none();
        if let Some(names) = words(agent.as_deref()) {
            *text = format!("{text}\n\n{names}");
        }
    }
    if let (false, Some(text)) = (told, words(None)) {
        entries.insert(0, Entry::System { text, agent: None, extra: Default::default() });
    }
}

/// The model's request for definitions and what comes back.
fn look_up(
    ids: &[Entry],
    before: &str,
    agent: Option<String>,
    wanted: &[String],
    window: &HashMap<String, Value>,
) -> [Entry; 2] {
    let id = free_id(ids, &format!("lookup-{before}"));
    let call_id = free_id(ids, &format!("{id}-call"));
    let query = json!({ "query": format!("select:{}", wanted.join(",")) }).to_string();
    let call =
        ToolCall { id: call_id.as_str().into(), name: SEARCH.into(), arguments: query.into() };
    let definitions: Vec<String> = wanted.iter().map(|n| window[n].to_string()).collect();
    [
        Entry::Assistant(AssistantEntry {
            id,
            calls: vec![call],
            agent: agent.clone(),
            ..AssistantEntry::default()
        }),
        Entry::Tool(ToolEntry {
            call_id,
            name: Some(SEARCH.into()),
            output: Some(definitions.join("\n").into()),
            agent,
            ..ToolEntry::default()
        }),
    ]
}
