//! Bills of replies beyond the window, of copies of tasks, and of stored recordings. Sums are worked out by
//! hand, in USD.

use crate::billing_variants::{CALL_USD, assert_bill, turns};
use crate::common::{CommandFolder, data, jsonl};

#[test]
fn replies_far_beyond_the_window_are_not_believed() {
    // The second is -1 in 32 bits.
    for (output, all) in [(99_999_999, "100009999"), (u32::MAX, "4294977295")] {
        let mut lines = turns(1, 2);
        lines[3]["message"]["usage"]["output_tokens"] = output.into();
        assert_bill(&[("a.jsonl", jsonl(&lines))], 1, CALL_USD);
        let here = CommandFolder::with("a.jsonl", jsonl(&lines));
        let told = format!("a.jsonl:4: the counters tell of a prompt and a reply of {all} tokens");
        here.run("import a.jsonl -o b.jsonl").ok().stderr_contains(&[&told]);
    }
}

#[test]
fn a_copy_of_a_task_of_cline_is_billed_once() {
    // A copy of a task of Cline in a folder with another name: 20 of input, 9,200 written, 9,000 read
    // and 140 of output, of Opus 4.5 at 5, 6.25, 0.50 and 25.
    let task = |folder: &str| {
        ["api_conversation_history.json", "ui_messages.json"].map(|name| {
            let text = std::fs::read_to_string(data(&format!("recordings/cline/{name}"))).unwrap();
            (format!("{folder}/{name}"), text)
        })
    };
    let all = [task("1"), task("1-copy")].concat();
    let files: Vec<(&str, String)> = all.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    let (rows, _) = assert_bill(&files, 2, 0.0656);
    assert_eq!(rows[1]["cost_usd"], 0.0);
}

#[test]
fn written_tokens_and_whole_prompts_are_billed_once() {
    let recorded =
        |name: &str| std::fs::read_to_string(data(&format!("recordings/{name}"))).unwrap();
    // GPT-5.6 Sol at 4, 0.4, 5 (written) and 20: 10,616 of input, 28,032 read, 13,000 written and
    // 280 of output, with the compaction.
    let codex = [("a.jsonl", recorded("codex/cache-writes.jsonl"))];
    assert_bill(&codex, 1, 0.042_464 + 0.011_212_8 + 0.065 + 0.005_6);
    // Sonnet 4.5 at 3, 0.3, 3.75 and 15: 51 of input, 14,000 read, 23,420 written and 130 of output.
    // What the program paid for the summary comes in addition.
    let roo = ["api_conversation_history.json", "ui_messages.json", "task_metadata.json"];
    let folder = "roo-code/0a0a0a0a-0000-4000-8000-000000000005";
    let roo = roo.map(|name| (name, recorded(&format!("{folder}/{name}"))));
    assert_bill(&roo, 1, 0.000_153 + 0.004_2 + 0.087_825 + 0.001_95 + 0.012_1);
}
