//! Aider's architect mode with a provider: tokens and prices of both models, by hand
//! calculation (docs/sources/aider.md §1.6).

use ctxbench_core::request::Purpose;
use ctxbench_core::tokens::o200k;
use ctxbench_scenarios::{Scenario, parse};

use crate::common::replayed::{self, requests_with};

fn session() -> Scenario {
    parse(include_bytes!("../data/aider/architect.jsonl"), "architect.jsonl").unwrap()
}

#[test]
fn editor_model_is_billed_at_its_price() {
    let spec = "aider:architect=true,editor_model=claude-haiku-4-5";
    let row = replayed::run(&session(), spec);
    let edits = requests_with(&row, Purpose::Edit);
    assert_eq!(edits.len(), 2, "the edit and the answer");
    // Only the written edit, with four tokens for the block.
    let edit = r#"edit_file {"path":"a.py","old":"x","new":"return x"}"#;
    let written = o200k(edit) + 4;
    assert_eq!((&*edits[0].model, edits[0].output_tokens), ("claude-haiku-4-5", written));
    // 1 and 5 USD per million tokens for Haiku, 3 and 15 USD for Sonnet.
    for r in &row.requests {
        let (input, output) = match r.purpose {
            Purpose::Edit => (1.0, 5.0),
            _ => (3.0, 15.0),
        };
        let usd = (r.input_tokens as f64 * input + r.output_tokens as f64 * output) / 1e6;
        assert!((r.cost_usd - usd).abs() < 1e-9, "{:?}: {} and {usd}", r.purpose, r.cost_usd);
    }
    let alone = replayed::run(&session(), "aider:architect=true");
    assert!(alone.summary.cost_usd > row.summary.cost_usd);
}

/// The editor keeps the result of the edit, so the main model does not know the port that its tool
/// reported. All other strategies do.
#[test]
fn architect_does_not_see_edit_results() {
    let kept = |spec: &str| replayed::run(&session(), spec).pair_recall_pct(None);
    assert_eq!(kept("aider"), Some(100.0));
    assert_eq!(kept("codex"), Some(100.0));
    assert_eq!(kept("aider:architect=true"), Some(0.0));
}
