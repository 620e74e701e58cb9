//! `--goals` from outside: what is shown and written, and what the exit code says.

use crate::common;

use common::Folder;
use ctxbench_reports::goals;
use ctxbench_reports::record::About;
use ctxbench_scenarios::builtin;

const RUN: &str = "run login-bug-tight --strategy none --strategy codex --transport direct";

/// Codex keeps the largest prompt of this session below 12,000 tokens only if it compacts; `none`
/// fills the window, which `[expect.none]` of the scenario says. It makes no compaction, so nothing
/// is known of what one frees.
const GOALS: &str = r#"
[[goal]]
name = "all steps"
metric = "steps_completed"
is = ">="
bound = 12
unit = "steps"
tag = "default"
says = "The session is gone through."
link = "mine"

[[goal]]
name = "something freed"
metric = "freed_pct"
is = ">"
bound = 0
unit = "%"
scenario = "login-bug-tight"
says = "A compaction makes room."
link = "mine"

[[goal]]
name = "elsewhere"
metric = "cost_usd"
is = "<"
bound = 1
unit = "USD"
scenario = "ten-compactions"
says = "Cheap."
link = "mine"
"#;

fn verdict(here: &Folder, strategy: &str, goal: &str) -> (String, String) {
    let rows = here.csv("ctxbench-out/goals.csv");
    let row = rows.iter().find(|r| r["strategy"] == strategy && r["goal"] == goal).unwrap();
    (row["verdict"].clone(), row["ended"].clone())
}

#[test]
fn goals_are_shown_and_change_the_exit_code_only_when_asked() {
    let here = Folder::new();
    here.write("g.toml", GOALS);
    let out = here.run(&format!("{RUN} --goals g.toml")).ok();
    out.prints(&["Goals on login-bug-tight", "Goals on sessions tagged default", "fail full"]);
    out.says(&["no session here is what these goals are about: elsewhere"]);
    assert_eq!(verdict(&here, "codex", "all steps"), ("pass".into(), "n/a".into()));
    assert_eq!(verdict(&here, "none", "all steps"), ("fail".into(), "full".into()));
    assert_eq!(verdict(&here, "codex", "something freed"), ("pass".into(), "n/a".into()));
    assert_eq!(verdict(&here, "none", "something freed").0, "n/a");
    assert_eq!(here.csv("ctxbench-out/goals.csv").len(), 4);
    here.run("report ctxbench-out --format md").ok().prints(&["Goals on login-bug-tight"]);
    assert!(here.read("ctxbench-out/index.html").contains("Goals on login-bug-tight"));
    // A control may miss what it likes.
    here.run(&format!("{RUN} --goals g.toml --goals-must-pass"))
        .ok()
        .says(&["all 2 goals that could be judged were reached"]);
    here.write("h.toml", GOALS.replace("bound = 12", "bound = 13"));
    here.run(&format!("{RUN} --goals h.toml --goals-must-pass"))
        .fails_with(1)
        .says(&["codex: goal “all steps” is missed: steps_completed >= 13 wanted, 12 measured"]);
    here.run("report ctxbench-out --goals h.toml --format table").ok().prints(&["fail 12"]);
}

#[test]
fn a_check_of_nothing_fails_and_mistakes_are_told() {
    let here = Folder::new();
    let elsewhere = &GOALS[GOALS.rfind("[[goal]]").unwrap()..];
    here.write("g.toml", elsewhere);
    here.run(&format!("{RUN} --goals g.toml --goals-must-pass"))
        .fails_with(1)
        .says(&["--goals-must-pass judged nothing"]);
    here.write("g.toml", elsewhere.replace("cost_usd", "cost_us"));
    here.run(&format!("{RUN} --goals g.toml"))
        .fails_with(2)
        .says(&["g.toml:3: no metric is called `cost_us`; did you mean cost_usd"]);
    here.run(&format!("{RUN} --goals none.toml")).fails_with(2).says(&["cannot read none.toml"]);
    here.run(&format!("{RUN} --goals-must-pass")).fails_with(2).says(&["--goals"]);
}

#[test]
fn the_goals_of_the_documents_are_about_built_in_scenarios_and_places_that_exist() {
    for goal in goals::documents().unwrap() {
        match &goal.about {
            About::Scenario(id) => assert!(builtin::IDS.contains(&id.as_str()), "{id}"),
            other => panic!("{}: {other:?}", goal.name),
        }
        let (file, anchor) = goal.link.split_once('#').unwrap();
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("<a id=\"{anchor}\">")), "{}: {}", goal.name, goal.link);
    }
    let here = Folder::new();
    here.run("run login-bug-tight --strategy codex --transport direct --goals documents")
        .ok()
        .prints(&["Goals on login-bug-tight", "bulk"])
        .says(&["compaction time"]);
}
