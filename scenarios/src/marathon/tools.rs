//! The tools of the session: their definitions and the arguments of one call.

use super::script::StoryCall;
use super::vfs::Vfs;
use serde_json::{Map, Value, json};

const TOOLS: &str = include_str!("../../data/login-bug-marathon/tools.txt");

/// The definitions that the model is shown.
pub fn definitions() -> Vec<Value> {
    TOOLS.lines().filter(|line| !line.is_empty()).map(definition).collect()
}

fn definition(line: &str) -> Value {
    let mut parts = line.splitn(3, '|');
    let mut next = || parts.next().expect("a tool has a name, a text and parameters");
    let (name, description, parameters) = (next(), next(), next());
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters.split(';') {
        let mut words = parameter.splitn(3, ':');
        let key = words.next().expect("a parameter has a name");
        let kind = words.next().expect("a parameter has a type");
        let text = words.next().unwrap_or("");
        let schema = json!({ "type": kind, "description": text });
        properties.insert(key.trim_end_matches('?').to_owned(), schema);
        if !key.ends_with('?') {
            required.push(key);
        }
    }
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "name": name, "description": description, "input_schema": schema })
}

/// Arguments of a call in the order in which they are written.
type Arguments = Vec<(&'static str, Value)>;

/// Their JSON, whatever order serde_json gives to the members of an object.
fn object(arguments: &Arguments) -> String {
    let members: Vec<String> =
        arguments.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// Name of the tool behind a short word of the story files.
pub fn tool_name(word: &str) -> &'static str {
    match word {
        "read" => "read_file",
        "edit" => "edit_file",
        "write" => "write_file",
        "grep" => "grep",
        "glob" => "glob",
        "ls" => "list_dir",
        "bash" => "bash",
        "test" => "run_tests",
        "sql" => "sql_query",
        "http" => "http_request",
        "logs" => "service_logs",
        "ticket" => "get_ticket",
        "todo" => "todo_write",
        other => panic!("the story uses known tools: {other}"),
    }
}

/// A call made ready: exact arguments and what is left of the body for the output.
pub struct Prepared {
    pub arguments: String,
    pub output: String,
    pub old: String,
    pub new: String,
}

pub fn prepare(call: &StoryCall, vfs: &Vfs) -> Prepared {
    let (input, output) = call.body.split_once("\n----\n").unwrap_or((&call.body, ""));
    let mut prepared = Prepared {
        arguments: String::new(),
        output: call.body.clone(),
        old: String::new(),
        new: String::new(),
    };
    let args = call.args.as_str();
    let first = args.split(' ').next().unwrap_or(args);
    let arguments = match call.tool.as_str() {
        "read" => read_arguments(args),
        "edit" => {
            let (old, new) =
                input.split_once("\n====\n").expect("an edit has an old and a new text");
            (prepared.old, prepared.new, prepared.output) = (old.into(), new.into(), output.into());
            vec![("path", json!(first)), ("old_string", json!(old)), ("new_string", json!(new))]
        }
        "write" => {
            prepared.new = content(args, input, vfs);
            prepared.output = output.to_owned();
            vec![("path", json!(first)), ("content", json!(prepared.new))]
        }
        "grep" => match args.split_once(" :: ") {
            Some((pattern, path)) => vec![("pattern", json!(pattern)), ("path", json!(path))],
            None => vec![("pattern", json!(args))],
        },
        "glob" => vec![("pattern", json!(args))],
        "ls" => vec![("path", json!(args))],
        "bash" => vec![("command", json!(args))],
        "test" => match args.strip_suffix(" -v") {
            Some(filter) => vec![("filter", json!(filter)), ("verbose", json!(true))],
            None if args == "-v" => vec![("verbose", json!(true))],
            None if args.is_empty() => vec![],
            None => vec![("filter", json!(args))],
        },
        "sql" => vec![("query", json!(args))],
        "http" => words(["method", "url", "body"], args),
        "logs" => words(["service", "window", "query"], args),
        "ticket" => vec![("key", json!(args))],
        _ => {
            prepared.output = "Task list updated.".to_owned();
            vec![("items", json!(input))]
        }
    };
    prepared.arguments = object(&arguments);
    prepared
}

fn read_arguments(args: &str) -> Arguments {
    let Some((path, range)) = args.split_once(' ') else {
        return vec![("path", json!(args))];
    };
    let (from, to) = line_range(range);
    vec![("path", json!(path)), ("offset", json!(from)), ("limit", json!(to + 1 - from))]
}

/// `40-80` as first and last line.
pub fn line_range(text: &str) -> (usize, usize) {
    let (from, to) = text.split_once('-').expect("a range has two ends");
    let number = |part: &str| part.parse().expect("a range has numbers");
    (number(from), number(to))
}

/// The words of a line, the last one with all that follows.
fn words(names: [&'static str; 3], args: &str) -> Arguments {
    names.into_iter().zip(args.splitn(3, ' ').map(Value::from)).collect()
}

/// Contents of a new file: literal, or made from an entity (`path http order,refund`).
fn content(args: &str, input: &str, vfs: &Vfs) -> String {
    let mut words = args.split(' ').skip(1);
    let Some(kind) = words.next() else {
        return input.to_owned() + "\n";
    };
    let names = words.next().expect("a generated file names entities");
    let parts: Vec<String> = names
        .split(',')
        .map(|name| {
            let entity = vfs.entity(name);
            match kind {
                "http" => vfs.code.http_test(entity),
                "openapi" => vfs.code.openapi(entity),
                other => panic!("the story generates known files: {other}"),
            }
        })
        .collect();
    parts.join("\n")
}
