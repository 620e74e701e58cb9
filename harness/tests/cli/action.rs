//! The GitHub action as its workflow runs it: `.ci/action` with the inputs as variables, on the
//! repository of examples/ci-gate.

use std::process::{Command, Output};

use crate::common::{self, CommandFolder, repository};

/// Runs the script in a folder with the example's files.
fn act(here: &CommandFolder, inputs: &[(&str, &str)]) -> Output {
    let example = repository("examples/ci-gate");
    let session = "sessions/release-day.toml";
    here.write(session, std::fs::read(example.join(session)).unwrap());
    here.write("strategy.py", std::fs::read(example.join("strategy.py")).unwrap());
    let program = common::binary();
    let mut action = Command::new("bash");
    action.arg(repository(".ci/action")).current_dir(here.path("."));
    let fixed = [
        ("CTXBENCH", program.to_str().unwrap()),
        ("SESSIONS", "sessions"),
        ("STRATEGIES", "reference\nmine=exec:python3 strategy.py\n"),
        ("BASELINE", "baseline.json"),
        ("OUT", "out"),
        ("ARGS", "--transport direct"),
        ("GITHUB_STEP_SUMMARY", "summary.md"),
        ("GITHUB_OUTPUT", "output"),
    ];
    action.envs(fixed).envs(inputs.iter().copied());
    action.output().unwrap()
}

fn output_text(output: &Output) -> String {
    let both = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8(both).unwrap()
}

#[test]
fn action_with_worse_results_fails_with_annotations() {
    let here = CommandFolder::new();
    let first = act(&here, &[]);
    // A baseline that somebody removed must not pass.
    assert_eq!(first.status.code(), Some(2), "{}", output_text(&first));
    assert!(output_text(&first).contains("baseline.json does not exist; store a baseline"));
    let missing = "::error title=ctxbench gate::baseline.json is missing";
    assert!(output_text(&first).contains(missing), "{}", output_text(&first));
    let summary = here.read("summary.md");
    assert!(summary.contains("mine") && summary.contains("release-day"), "{summary}");
    assert_eq!(here.read("output"), "results=out\n");

    here.run("gate out --baseline baseline.json --store").ok();
    let same = act(&here, &[]);
    assert!(same.status.success(), "{}", output_text(&same));
    assert!(output_text(&same).contains("::notice title=ctxbench gate::gate passed"));
    assert!(here.read("out/gate.xml").contains("<testsuite "));

    let worse = act(&here, &[("MAX", "cost_usd=0.000001"), ("MIN", "recall_pct=0")]);
    assert_eq!(worse.status.code(), Some(1), "{}", output_text(&worse));
    assert!(output_text(&worse).contains("::error title=ctxbench gate::release-day × mine"));
    let summary = here.read("summary.md");
    let next = "    All figures: ctxbench report out --details\n";
    assert!(summary.contains("## ctxbench gate failed") && summary.contains(next), "{summary}");
}

#[test]
fn action_with_a_failing_strategy_still_reports() {
    let here = CommandFolder::new();
    act(&here, &[]);
    here.run("gate out --baseline baseline.json --store").ok();
    std::fs::remove_file(here.path("summary.md")).unwrap();
    let failing = act(&here, &[("STRATEGIES", "reference\nmine=exec:no-such-program\n")]);
    assert_eq!(failing.status.code(), Some(1), "{}", output_text(&failing));
    assert!(output_text(&failing).contains("::error title=ctxbench gate::release-day × mine"));
    assert!(here.read("summary.md").contains("no-such-program"));
}

#[test]
fn action_inputs_are_never_run_as_commands() {
    let here = CommandFolder::new();
    let hostile = "codex:x=$(touch pwned)`touch pwned`;touch pwned";
    let refused = act(&here, &[("STRATEGIES", hostile), ("SESSIONS", "$(touch pwned)")]);
    assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
    assert!(!here.path("pwned").exists());
}
