//! Secrets and personal data are removed from files that are meant for others.

use serde_json::json;

use crate::common::CommandFolder;

/// Random keys, assembled here so that secret scanners ignore this file.
fn secrets() -> [String; 5] {
    let body = "aB3dE5gH7jK9mN2pQ4sT6vW8yZaB3dE5gH7jK9mN2pQ4sT6vW8yZ";
    [
        format!("ghp_{}", &body[..36]),
        format!("sk-ant-api03-{body}"),
        "ada@engine.org".into(),
        "/home/ada/".into(),
        "swordfish-7".into(),
    ]
}

/// Returns a shell output with every secret, which is needed much later.
fn sample_text() -> String {
    let [github, anthropic, mail, home, password] = secrets();
    format!(
        "GITHUB_TOKEN={github}\nANTHROPIC_API_KEY={anthropic}\ndb_password = \"{password}\"\n\
         owner {mail}\nbuilt {home}engine/analytical_mill.rs in 4711 steps\n"
    )
}

/// Returns a conversation that contains the output and uses it seven replies later.
fn conversation() -> String {
    let [github, _, mail, home, _] = secrets();
    let call = |id: usize, command: &str| {
        let arguments = json!({ "command": command }).to_string();
        let call = json!({"id": format!("c{id}"), "type": "function",
            "function": {"name": "bash", "arguments": arguments}});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    };
    let result = |id: usize, text: &str| json!({"role": "tool", "tool_call_id": format!("c{id}"), "content": text});
    let mut messages = vec![json!({"role": "user", "content": "Why is the build slow?"})];
    messages.extend([call(0, "env"), result(0, &sample_text())]);
    for id in 1..8 {
        messages.extend([call(id, "cargo build"), result(id, "Compiling the mill")]);
    }
    let command = format!(
        "curl -H 'Authorization: token {github}' -d mail={mail} < {home}engine/analytical_mill.rs"
    );
    messages.extend([call(8, &command), result(8, "ok")]);
    json!({ "messages": messages }).to_string()
}

/// A scripted session with secrets that must be kept.
fn scripted() -> String {
    let [_, _, mail, home, _] = secrets();
    include_str!("../data/mill.toml").replace("MAIL", &mail).replace("HOME", &home)
}

#[test]
fn redacted_import_has_no_secrets() {
    let here = CommandFolder::with("talk.json", conversation());
    let plain = here.run("import talk.json").ok();
    let out = here.run("import talk.json --redact").ok();
    for secret in &secrets() {
        plain.prints(&[secret]);
        out.lacks(&[secret]);
    }
    let all = "note: redacted: 1 anthropic-key, 1 github-token, 1 mail address, 1 name of a home \
               folder, 1 password\n";
    assert!(out.stderr.ends_with(all), "{}", out.stderr);
    // The same need is found in the redacted text.
    plain.prints(&["\"tokens\":[\"/home/ada/engine/analytical_mill.rs\""]);
    out.prints(&["\"tokens\":[\"/home/user1/engine/analytical_mill.rs\""]);
    // The redacted file is a valid session.
    here.write("given.jsonl", &out.stdout);
    here.run("run given.jsonl --strategy none --transport direct").ok();
    assert_eq!(here.csv("ctxbench-out/summary.csv")[0]["status"], "completed");
}

#[test]
fn report_has_no_secrets_by_default() {
    let here = CommandFolder::with("mill.toml", scripted());
    here.run("run mill.toml --strategy none --transport direct --out out").ok();
    let [_, _, mail, home, _] = secrets();
    for format in ["md", "html", "csv", "json", "svg", "table"] {
        here.run(&format!("report out --format {format} -o {format}")).ok();
        for (file, bytes) in here.files(format) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(&mail) && !text.contains(&home), "{format}: {file}");
        }
    }
    assert!(here.read("csv/facts.csv").contains("/home/user1/engine"));
    here.run("report out --format json -o plain --no-redact").ok().lacks(&["redacted"]);
    assert!(here.read("plain/results.json").contains(&mail));
    let told = "1 mail address, 1 name of a home folder; --no-redact keeps";
    here.run("report out").ok().stderr_contains(&[told]);
    // Sessions without secrets are unchanged, byte for byte.
    here.run("run login-bug --strategy none --transport direct --out own").ok();
    here.run("report own --format json -o again").ok().lacks(&["redacted"]);
    assert_eq!(here.read("own/results.json"), here.read("again/results.json"));
}
