//! A provider that refuses, does not answer or answers too much, tested through the command.

use crate::common::CommandFolder;

/// Two turns that fill 8k tokens with results, under limits of 4 % of 200k, with a fault at the
/// summary.
fn scenario(fault: &str) -> String {
    let mut out =
        String::from("id = \"f\"\ncontext_window = 200000\nmax_output = 32000\nscale = 0.04\n");
    for turn in 0..2 {
        out += &format!("[[step]]\ntype = \"user\"\ntext = \"look at part {turn}\"\n");
        for i in 0..5 {
            let words = format!("result {turn} {i} ").repeat(150);
            out += &format!(
                "[[step]]\ntype = \"assistant\"\ncalls = [{{ id = \"c{turn}{i}\", name = \
                 \"read_file\", arguments = \"{{}}\" }}]\n\
                 [[step]]\ntype = \"tool\"\ncall_id = \"c{turn}{i}\"\noutput = \"{words}\"\n"
            );
        }
        out += "[[step]]\ntype = \"assistant\"\ntext = \"done\"\n";
    }
    out + fault
}

/// Returns these columns of the only row, separated by spaces.
fn row(fault: &str, strategy: &str, transport: &str, columns: &str) -> String {
    let here = CommandFolder::with("f.toml", scenario(fault));
    let how = format!("--strategy {strategy} --transport {transport} --calibrate off");
    here.run(&format!("run f.toml {how} --out o")).ok();
    let row = here.row("o", strategy);
    columns.split(' ').map(|c| row[c].as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn codex_retries_and_compacts() {
    // docs/sources/codex.md §1.5: other errors are retried up to five times.
    let fault = "[[fault]]\non = \"summary\"\ntimes = 2\nstatus = 500\nmessage = \"oops\"\n";
    for transport in ["http", "direct"] {
        // Two summary calls that failed and the one that did not.
        let row = row(fault, "codex", transport, "status compactions summary_calls");
        assert_eq!(row, "completed 1 3", "{transport}");
    }
}

/// A refusal of one request with the message of Anthropic's overflow.
const OVERFLOW: &str = "[[fault]]\non = \"sample\"\nnth = 4\nstatus = 400\nmessage = \"prompt is too \
    long: 9 tokens > 8 maximum\"\n";

#[test]
fn overflow_with_unknown_message_is_not_recognised() {
    assert_eq!(row(OVERFLOW, "none", "http", "provider_overflows"), "1");
    let unknown =
        OVERFLOW.replace("prompt is too long: 9 tokens > 8 maximum", "that is more than fits");
    assert_eq!(row(&unknown, "none", "http", "provider_overflows"), "0");
}

#[test]
fn late_refusal_adds_its_delay() {
    let total = |after: u64| -> u64 {
        let fault =
            format!("[[fault]]\non = \"sample\"\nnth = 2\nstatus = 500\nafter_ms = {after}\n");
        row(&fault, "none", "direct", "total_ms").parse().unwrap()
    };
    assert_eq!(total(600_000) - total(0), 600_000);
}

#[test]
fn injected_refusal_breaks_no_integrity_rule() {
    let row = row(OVERFLOW, "none", "direct", "provider_overflows integrity_failures");
    assert_eq!(row, "1 0");
}

#[test]
fn empty_reply_is_followed_by_a_continuation_prompt() {
    let fault = "[[fault]]\non = \"sample\"\nnth = 3\ntext = \"\"\n";
    let row = row(fault, "none", "direct", "status user_interventions extra_requests");
    assert_eq!(row, "completed 1 1");
}
