use super::super::testing::recorded;
use super::*;

#[test]
fn a_lost_line_that_others_refer_to_and_another_version_are_refused() {
    let text = std::fs::read_to_string(recorded("ctxbench-record/port.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let refused = |lines: &[&str]| {
        let text = lines.join("\n");
        let read = FORMAT.import_all(&Source::of_bytes(text.as_bytes(), "r.jsonl"));
        read.unwrap_err().to_string()
    };
    let like = lines.iter().find(|line| line.contains("\"like\":2,")).unwrap();
    let e = refused(&[lines[0], "noise", like]);
    assert!(
        e.contains("r.jsonl:2: not a JSON object") && e.contains("like that of exchange 2"),
        "{e}"
    );
    let newer = lines[0].replace("\"version\":1", "\"version\":2");
    let e = refused(&[&newer, lines[1]]);
    assert!(e.starts_with("r.jsonl:1: version 2 of the recording; expected version 1"), "{e}");
}
