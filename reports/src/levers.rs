//! What a lever beside compaction changes: each row with one against the same strategy without.

use crate::fmt;
use crate::record::{Results, RunRecord, Status};
use crate::sections::Section;
use crate::sheet::{Group, Sheet};
use crate::view;

const TITLE: &str = "Levers beside compaction: each row against the same strategy without";
const NOTE: &str = "Tokens: input and output of all windows. ×: with ÷ without. Peak: of the main \
    window. Replies are as recorded, so this is the bill of the same work: what a model says with \
    less thinking, or a smaller one at all, is not known. A lever that looks tools up adds a step \
    for each tool first used. A team's members do the session's own steps; how many there are and \
    what share each does makes its figure.";
const HEAD: [&str; 9] =
    ["strategy", "tokens", "×", "output", "×", "cost $", "×", "peak", "compactions"];

/// The sheet, if any row has a lever and its counterpart.
pub(crate) fn section(results: &Results) -> Vec<Section<'static>> {
    let groups = groups(results);
    if groups.is_empty() {
        return vec![];
    }
    let head = HEAD.map(String::from).to_vec();
    vec![Section::Sheet(Sheet { title: TITLE.into(), note: NOTE.into(), head, groups })]
}

fn groups(results: &Results) -> Vec<Group> {
    let mut out = Vec::new();
    for block in view::blocks(results) {
        let mut rows = Vec::new();
        for run in &block.runs {
            let with: Vec<&RunRecord> = block
                .runs
                .iter()
                .filter(|r| r.strategy.without_levers.as_ref() == Some(&run.strategy.label))
                .copied()
                .collect();
            if !with.is_empty() {
                rows.push(row(run, None));
                rows.extend(with.into_iter().map(|r| row(r, Some(run))));
            }
        }
        if !rows.is_empty() {
            out.push(Group { name: block.name(), rows });
        }
    }
    out
}

fn tokens(r: &RunRecord) -> u64 {
    r.summary.input_tokens + r.summary.output_tokens
}

/// A run, and how often what it takes holds that of the other.
fn row(run: &RunRecord, without: Option<&RunRecord>) -> Vec<String> {
    let s = &run.summary;
    let times = |of: &dyn Fn(&RunRecord) -> f64| match without {
        None => String::new(),
        Some(other) if whole(run) && whole(other) && of(other) > 0.0 => {
            format!("{:.2}", of(run) / of(other))
        }
        Some(_) => "n/a".to_string(),
    };
    vec![
        run.strategy.label.clone(),
        fmt::tokens(tokens(run) as f64),
        times(&|r| tokens(r) as f64),
        fmt::tokens(s.output_tokens as f64),
        times(&|r| r.summary.output_tokens as f64),
        fmt::usd(s.cost_usd),
        times(&|r| r.summary.cost_usd),
        fmt::tokens(s.peak_context_tokens as f64),
        s.compactions.to_string(),
    ]
}

/// One that died on the way was cheaper for that reason.
fn whole(r: &RunRecord) -> bool {
    r.status == Status::Completed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn run(label: &str, without: Option<&str>, input: u64, output: u64, usd: f64) -> RunRecord {
        let mut run = sample::run("s", label, 1);
        run.status = Status::Completed;
        run.strategy.without_levers = without.map(str::to_string);
        run.summary.input_tokens = input;
        run.summary.output_tokens = output;
        run.summary.cost_usd = usd;
        run
    }

    #[test]
    fn each_row_stands_below_its_own_strategy() {
        let runs = vec![
            run("codex", None, 900, 100, 2.0),
            run("codex+team=6x100%", Some("codex"), 6_300, 700, 7.0),
            run("codex+tools=deferred", Some("codex"), 650, 100, 1.5),
            run("aider", None, 10, 1, 0.1),
        ];
        let all = groups(&Results { runs, ..Results::default() });
        let cells = |i: usize| all[0].rows[i].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(all[0].rows.len(), 3, "a strategy without levers has no row");
        assert_eq!((cells(0)[0], cells(0)[2]), ("codex", ""));
        // 7,000 ÷ 1,000 tokens, 700 ÷ 100 of output, 7 ÷ 2 dollars.
        assert_eq!([cells(1)[2], cells(1)[4], cells(1)[6]], ["7.00", "7.00", "3.50"]);
        assert_eq!([cells(2)[2], cells(2)[4], cells(2)[6]], ["0.75", "1.00", "0.75"]);
    }

    #[test]
    fn nothing_is_said_of_a_run_that_died_or_stands_alone() {
        let mut died = run("codex+tools=deferred", Some("codex"), 90, 10, 0.2);
        died.status = Status::Overflow;
        let runs = vec![run("codex", None, 900, 100, 2.0), died.clone()];
        let all = groups(&Results { runs, ..Results::default() });
        assert_eq!(all[0].rows[1][2], "n/a");
        assert!(section(&Results { runs: vec![died], ..Results::default() }).is_empty());
    }
}
