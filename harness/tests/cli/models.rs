//! User-defined models, and recordings of models that are not listed.

use crate::common::{CommandFolder, jsonl};
use serde_json::json;

/// The example of docs/config.md.
const OWN: &str = include_str!("../../../tests/data/models/own.toml");

fn with_own() -> CommandFolder {
    CommandFolder::with("own.toml", OWN)
}

#[test]
fn documented_models_file_is_the_tested_one() {
    assert!(include_str!("../../../docs/config.md").contains(OWN.trim_end()));
}

const RUN: &str = "run login-bug --strategy reference --transport direct";

#[test]
fn user_defined_model_has_its_window_counting_and_prices() {
    let here = with_own();
    here.run(&format!("{RUN} --model lab-coder --models own.toml")).ok();
    let rows = here.csv("ctxbench-out/requests.csv");
    assert!(!rows.is_empty());
    for row in rows {
        let n = |name: &str| row[name].parse::<f64>().unwrap();
        // 0.5 in, 0.05 read, 2 out, per million; writing is free.
        let fresh = n("input_tokens") - n("cache_read_tokens");
        let usd = (fresh * 0.5 + n("cache_read_tokens") * 0.05 + n("output_tokens") * 2.0) / 1e6;
        assert!((n("cost_usd") - usd).abs() < 1e-6, "{row:?}");
        assert_eq!(n("cache_read_tokens") % 16.0, 0.0, "{row:?}");
    }
    let results = here.json("ctxbench-out/results.json");
    assert_eq!(results["runs"][0]["window"], 131_072);
    assert_eq!(
        results["assumptions"]["tokens of lab-coder"],
        "1.08 · o200k + 6 per block, 1600 per image; error not measured"
    );
    let source = results["assumptions"]["prices of lab-coder"].as_str().unwrap();
    assert!(source.starts_with("own.toml, "), "{source}");
}

#[test]
fn user_defined_models_work_with_every_command() {
    let here = with_own();
    here.run("list models --models own.toml").ok().prints(&[
        "lab-coder",
        "0.5 / 0.05 / 0.5 / 2",
        "2 / 0.2 / 2 / 12",
        " + own.toml, ",
    ]);
    here.run("list models").ok();
    let line = |model: &str| format!("compact login-bug --strategy codex --model {model}");
    here.run(&line("lab-coder --models own.toml")).ok();
    here.refuses(&line("lab-coder"), &["there is no model `lab-coder`"]);
    here.run(&format!("{RUN} --model gpt-5.4 --summary-model lab-coder --models own.toml")).ok();
    let weak = "--strategy opencode:model=lab-coder --model gpt-5.4 --models own.toml";
    here.run(&format!("run login-bug --transport direct {weak}")).ok();
}

#[test]
fn results_with_other_prices_are_not_compared() {
    let here = with_own();
    let prices = |out: &str| {
        let results = here.json(&format!("{out}/results.json"));
        results["assumptions"]["price table"].as_str().unwrap().to_string()
    };
    let model = "--model gpt-5.4 --out";
    here.run(&format!("{RUN} {model} listed")).ok();
    here.run(&format!("{RUN} {model} own --models own.toml")).ok();
    let hash =
        prices("own").strip_prefix(&format!("{} + own.toml, ", prices("listed"))).map(str::len);
    assert_eq!(hash, Some(8), "{}", prices("own"));
    here.run("gate listed --baseline base.json --store").ok();
    here.run("gate own --baseline base.json").fails_with(1).prints(&["price table", "own.toml"]);
    here.refuses("compare listed own", &["price table", "own.toml"]);
    // Changed content of the file means a different table. The same content at another path does
    // not.
    here.write("other/own.toml", OWN);
    here.run(&format!("{RUN} {model} same --models other/own.toml")).ok();
    assert_eq!(prices("same"), prices("own"));
    here.write("other/own.toml", OWN.replace("2026", "2027"));
    here.run(&format!("{RUN} {model} other-out --models other/own.toml")).ok();
    assert_ne!(prices("other-out"), prices("own"));
}

fn recorded_with(model: &str) -> String {
    let usage = json!({"input": 1_000_000, "output": 100, "cache_read": 0, "cache_write": 0});
    jsonl(&[
        json!({"type": "session", "version": 1, "id": "s", "model": model}),
        json!({"type": "user", "id": "u", "text": "On which port does the server listen?"}),
        json!({"type": "assistant", "id": "a", "text": "On port 8443.", "usage": usage, "model": model}),
    ])
}

#[test]
fn recording_of_an_unlisted_model_uses_its_family() {
    let here = with_own();
    let run = "run s.jsonl --strategy reference --transport direct --out";
    here.write("s.jsonl", recorded_with("gpt-5.9-foo"));
    let said = "gpt-5.9-foo is not in the table of models: run as gpt-5.5 (prices, window); name \
                it in a file of --models";
    let out = here.run(&format!("{run} foo")).ok();
    assert_eq!(out.stderr.matches(said).count(), 1, "{}", out.stderr);
    let runs = here.runs("foo");
    for row in &runs {
        assert_eq!(row["model"], "gpt-5.5");
        assert!(row["scenario"]["warnings"].to_string().contains(said));
    }
    let recorded = &runs[0];
    assert_eq!(recorded["strategy"]["name"], "as-recorded");
    assert!(recorded["note"].as_str().unwrap().contains("its calls are priced as gpt-5.5"));
    // With an entry in the user's file it is that model.
    here.run(&format!("{run} own --models own.toml")).ok().lacks(&["not in the table"]);
    let runs = here.runs("own");
    assert_eq!((&runs[0]["model"], &runs[1]["window"]), (&json!("gpt-5.9-foo"), &json!(500_000)));
    // A name without a family runs like a session without a model.
    here.write("s.jsonl", recorded_with("mystery-1"));
    let out = here.run(&format!("{run} mystery")).ok();
    out.stderr_contains(&["mystery-1 is not in the table of models: run as claude-sonnet-4-6"]);
}
