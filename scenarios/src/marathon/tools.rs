//! The tools of the session: their definitions and the arguments of one call.

use super::json::{Object, array};
use super::script::Call;
use super::vfs::Vfs;

const TOOLS: &str = include_str!("../../data/login-bug-marathon/tools.txt");

/// JSON array of the definitions.
pub fn definitions() -> String {
    let tools: Vec<String> =
        TOOLS.lines().filter(|line| !line.is_empty()).map(definition).collect();
    array(&tools)
}

fn definition(line: &str) -> String {
    let mut parts = line.splitn(3, '|');
    let mut next = || parts.next().expect("a tool has a name, a text and parameters");
    let (name, description, parameters) = (next(), next(), next());
    let mut properties = Object::new();
    let mut required = Vec::new();
    for parameter in parameters.split(';') {
        let mut words = parameter.splitn(3, ':');
        let key = words.next().expect("a parameter has a name");
        let kind = words.next().expect("a parameter has a type");
        let text = words.next().unwrap_or("");
        let schema = Object::new().with("type", kind).with("description", text).end();
        properties = properties.with_raw(key.trim_end_matches('?'), &schema);
        if !key.ends_with('?') {
            required.push(key);
        }
    }
    let schema = Object::new()
        .with("type", "object")
        .with_raw("properties", &properties.end())
        .with("required", required)
        .end();
    Object::new()
        .with("name", name)
        .with("description", description)
        .with_raw("input_schema", &schema)
        .end()
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

pub fn prepare(call: &Call, vfs: &Vfs) -> Prepared {
    let (input, output) = call.body.split_once("\n----\n").unwrap_or((&call.body, ""));
    let mut prepared = Prepared {
        arguments: String::new(),
        output: call.body.clone(),
        old: String::new(),
        new: String::new(),
    };
    let args = call.args.as_str();
    let first = args.split(' ').next().unwrap_or(args);
    let object = match call.tool.as_str() {
        "read" => read_arguments(args),
        "edit" => {
            let (old, new) =
                input.split_once("\n====\n").expect("an edit has an old and a new text");
            (prepared.old, prepared.new, prepared.output) = (old.into(), new.into(), output.into());
            Object::new().with("path", first).with("old_string", old).with("new_string", new)
        }
        "write" => {
            prepared.new = content(args, input, vfs);
            prepared.output = output.to_owned();
            Object::new().with("path", first).with("content", prepared.new.as_str())
        }
        "grep" => match args.split_once(" :: ") {
            Some((pattern, path)) => Object::new().with("pattern", pattern).with("path", path),
            None => Object::new().with("pattern", args),
        },
        "glob" => Object::new().with("pattern", args),
        "ls" => Object::new().with("path", args),
        "bash" => Object::new().with("command", args),
        "test" => match args.strip_suffix(" -v") {
            Some(filter) => Object::new().with("filter", filter).with("verbose", true),
            None if args == "-v" => Object::new().with("verbose", true),
            None if args.is_empty() => Object::new(),
            None => Object::new().with("filter", args),
        },
        "sql" => Object::new().with("query", args),
        "http" => http_arguments(args),
        "logs" => {
            let mut words = args.splitn(3, ' ');
            let object = Object::new()
                .with("service", words.next().unwrap_or(""))
                .with("window", words.next().unwrap_or(""));
            match words.next() {
                Some(query) => object.with("query", query),
                None => object,
            }
        }
        "ticket" => Object::new().with("key", args),
        _ => {
            prepared.output = "Task list updated.".to_owned();
            Object::new().with("items", input)
        }
    };
    prepared.arguments = object.end();
    prepared
}

fn read_arguments(args: &str) -> Object {
    let Some((path, range)) = args.split_once(' ') else {
        return Object::new().with("path", args);
    };
    let (from, to) = line_range(range);
    Object::new().with("path", path).with("offset", from).with("limit", to + 1 - from)
}

/// `40-80` as first and last line.
pub fn line_range(text: &str) -> (usize, usize) {
    let (from, to) = text.split_once('-').expect("a range has two ends");
    let number = |part: &str| part.parse().expect("a range has numbers");
    (number(from), number(to))
}

fn http_arguments(args: &str) -> Object {
    let mut words = args.splitn(3, ' ');
    let object = Object::new()
        .with("method", words.next().unwrap_or("GET"))
        .with("url", words.next().unwrap_or(""));
    match words.next() {
        Some(body) => object.with("body", body),
        None => object,
    }
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
