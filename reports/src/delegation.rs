//! Cost of subagents, and the facts that they returned and that were in the context when needed.

use crate::fmt;
use crate::record::{Delegation, RunRecord, Status};
use crate::sheet::{ByBlock, Column, cells, heads};

pub(crate) const SHEET: ByBlock = ByBlock {
    title: "Delegation: what subagents cost, and how much of what they found is there when needed",
    note: "Beside the scenario: what its recording decides for every strategy alike, namely the \
        facts that first appear in a subagent's window, the share of them that its result \
        returns, and how often one is needed in another window. Done: subagents that finished; \
        one that did not still gives its recorded result, and the run counts as not finished. \
        Cost: of all windows; in agents: the share spent in theirs. Kept: of the facts needed in \
        another window, those in the context there.",
    head: || heads(COLUMNS),
    told: recorded,
    rows: |r| if r.delegation.is_empty() { vec![] } else { vec![cells(COLUMNS, r)] },
};

const COLUMNS: &[Column<RunRecord>] = &[
    ("agents\ndone", |r| {
        let done = r.delegation.iter().filter(|d| d.status == Status::Completed).count();
        format!("{done}/{}", r.delegation.len())
    }),
    ("cost $", |r| fmt::usd(r.summary.cost_usd)),
    ("in\nagents %", |r| share(r.delegation.iter().map(|d| d.cost_usd).sum(), r.summary.cost_usd)),
    ("compactions\nthere", |r| sum(r, |d| d.compactions).to_string()),
    ("peak\nthere", |r| {
        let peak = r.delegation.iter().map(|d| d.peak_context_tokens).max();
        fmt::tokens(peak.unwrap_or(0) as f64)
    }),
    ("kept\n%", |r| share(sum(r, |d| d.kept_outside) as f64, sum(r, |d| d.needed_outside) as f64)),
];

fn sum(run: &RunRecord, of: fn(&Delegation) -> u64) -> u64 {
    run.delegation.iter().map(of).sum()
}

fn share(part: f64, whole: f64) -> String {
    fmt::known((whole > 0.0).then(|| 100.0 * part / whole), fmt::pct)
}

/// Part that does not depend on the strategy, taken from any run with these subagents.
fn recorded(runs: &[&RunRecord]) -> Option<String> {
    let run = runs.iter().find(|r| !r.delegation.is_empty())?;
    let (found, returned) = (sum(run, |d| d.delegated_facts), sum(run, |d| d.returned_facts));
    let agents = fmt::pluralize(run.delegation.len(), "subagent");
    if found == 0 {
        return Some(format!("{agents}; no facts are found there"));
    }
    let share = share(returned as f64, found as f64);
    let facts = fmt::pluralize(found, "fact");
    let needed = sum(run, |d| d.needed_outside);
    Some(format!(
        "{agents}; their results return {share} % of the {facts} found there; needed in \
         another window: {needed}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Results;
    use crate::{csv, testing};

    fn results() -> Results {
        let mut run = testing::run("s", "codex", 1);
        run.summary.cost_usd = 2.0;
        let agent = |agent: &str, cost_usd: f64, found: u64, returned: u64| Delegation {
            agent: agent.into(),
            call: Some("c1".into()),
            cost_usd,
            compactions: 1,
            peak_context_tokens: 1_000,
            delegated_facts: found,
            returned_facts: returned,
            needed_outside: found,
            kept_outside: 1,
            ..Delegation::default()
        };
        run.delegation = vec![agent("x", 0.3, 3, 2), agent("y", 0.2, 1, 1)];
        testing::of(vec![run])
    }

    #[test]
    fn shares_by_hand() {
        let all = SHEET.groups(&results());
        // 0.5 of 2 USD is a quarter; two of four pairs were kept.
        assert_eq!(
            all[0].rows[0][1..],
            ["2/2", &fmt::usd(2.0), &fmt::pct(25.0), "2", "1.0k", &fmt::pct(50.0)]
        );
        // The part from the recording is printed once: three of four facts were returned.
        assert_eq!(
            all[0].name,
            format!(
                "s: 2 subagents; their results return {} % of the 4 facts found there; needed in \
                 another window: 4",
                fmt::pct(75.0)
            )
        );
        assert!(SHEET.groups(&testing::of(vec![testing::run("s", "codex", 1)])).is_empty());
    }

    #[test]
    fn one_that_did_not_finish_is_counted_as_such() {
        let mut r = results();
        r.runs[0].delegation[1].status = Status::Overflow;
        r.runs[0].delegation[0].delegated_facts = 0;
        r.runs[0].delegation[1].delegated_facts = 0;
        let all = SHEET.groups(&r);
        assert_eq!(all[0].rows[0][1], "1/2");
        assert_eq!(all[0].name, "s: 2 subagents; no facts are found there");
        assert!(SHEET.note.contains("one that did not still gives its recorded result"));
    }

    #[test]
    fn one_that_never_began_has_no_figures() {
        let mut r = results();
        r.runs[0].delegation[1].status = Status::NotApplicable;
        let text = csv::csv_text("delegation.csv", &r);
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let column = |name: &str| head.iter().position(|h| h == name).unwrap();
        assert_eq!(
            (&rows[0][column("cost_usd")], &rows[0][column("status")]),
            ("0.3", "completed")
        );
        assert_eq!((&rows[1][column("cost_usd")], &rows[1][column("status")]), ("n/a", "n/a"));
        assert_eq!(&rows[1][column("delegated_facts")], "1", "what the session holds is known");
        assert_eq!(&head[head.len() - 1], "summariser");
    }
}
