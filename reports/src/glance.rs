//! The conclusion in a few lines: broken rules first, then who is cheapest, forgets least and waits
//! longest, and what of it is real.

use std::collections::BTreeSet;

use crate::record::{Results, RunRecord, Status};

use crate::fmt;
use crate::metrics::{self, Better, Metric, Named, Over, Ranking};
use crate::recorded;
use crate::stats::{self, Verdict};
use crate::view::{self, Block};

/// Names in a line of ranks.
const SHOWN: usize = 3;

/// What is said of one model (and one summariser, where there are several).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glance {
    /// What it is about.
    pub(crate) heading: String,
    /// In reading order.
    pub(crate) lines: Vec<GlanceLine>,
}

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GlanceLine {
    /// The question, in two words.
    pub(crate) what: &'static str,
    /// The answer.
    pub(crate) text: String,
    /// Whether it must be read before anything else.
    pub(crate) alarm: bool,
}

/// The conclusions, in the order of the blocks.
pub(crate) fn glances(results: &Results) -> Vec<Glance> {
    let blocks = view::blocks(results);
    let mut keys: Vec<(&str, Option<&str>)> = Vec::new();
    for b in &blocks {
        let key = (b.first().model.as_str(), b.summariser);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    // Blocks without any summary belong to every summariser of their model.
    let several = keys.iter().any(|(_, s)| s.is_some());
    keys.retain(|(model, s)| {
        s.is_some()
            || !several
            || !blocks.iter().any(|b| b.first().model == *model && b.summariser.is_some())
    });
    let glance = |(model, summariser): &(&str, Option<&str>)| {
        let own: Vec<&Block<'_>> = blocks
            .iter()
            .filter(|b| {
                b.first().model == *model && (b.summariser == *summariser || b.summariser.is_none())
            })
            .collect();
        let summaries =
            summariser.map_or(String::new(), |s| format!(", summaries: {}", fmt::one_line(s)));
        let sessions =
            if own.len() == 1 { "1 session".into() } else { format!("{} sessions", own.len()) };
        let mut lines = vec![broken(&own)];
        for (what, text) in recorded::told(&own).into_iter().flatten() {
            lines.push(GlanceLine { what, text, alarm: false });
        }
        let (evidence, tests): (Vec<&Block<'_>>, Vec<&Block<'_>>) =
            own.iter().copied().partition(|b| b.first().is_evidence());
        lines.extend(ranks(&evidence));
        lines.extend(left_out(&tests));
        lines.extend(real(results, model));
        Glance {
            heading: format!("At a glance: {sessions}, {}{summaries}", fmt::one_line(model)),
            lines,
        }
    };
    keys.iter().map(glance).filter(|g| g.lines.len() > 1).collect()
}

/// Products that broke a rule or did not finish, with the number of sessions.
fn broken(blocks: &[&Block<'_>]) -> GlanceLine {
    let counted = |failed: &dyn Fn(&RunRecord) -> bool| -> Vec<String> {
        let count = |label: &&str| sessions(blocks, label).filter(|r| failed(r)).count();
        let mut found: Vec<(&str, usize)> =
            labels(blocks).into_iter().map(|l| (l, count(&l))).filter(|(_, n)| *n > 0).collect();
        found.sort_by_key(|(label, n)| (std::cmp::Reverse(*n), *label));
        let several = blocks.len() > 1;
        found
            .iter()
            .map(
                |(l, n)| {
                    if several { format!("{} ({n})", fmt::one_line(l)) } else { fmt::one_line(l) }
                },
            )
            .collect()
    };
    let rules = counted(&|r| r.broken_rules() > 0);
    let unfinished = counted(&|r| r.status != Status::Completed && r.broken_rules() == 0);
    let mut parts = Vec::new();
    if !rules.is_empty() {
        parts.push(format!("INTEGRITY FAILURES of {}", rules.join(", ")));
    }
    if !unfinished.is_empty() {
        parts.push(format!("not finished by {}", unfinished.join(", ")));
    }
    let alarm = !parts.is_empty();
    if alarm && blocks.len() > 1 {
        parts.push("in brackets: in how many sessions".into());
    }
    GlanceLine {
        what: "broken",
        text: if alarm { parts.join("; ") } else { "nothing; every product finished".into() },
        alarm,
    }
}

fn labels<'a>(blocks: &[&Block<'a>]) -> BTreeSet<&'a str> {
    blocks
        .iter()
        .flat_map(|b| b.runs.iter().copied())
        .filter(|r| r.is_contender())
        .map(|r| r.strategy.label.as_str())
        .collect()
}

fn sessions<'a>(blocks: &[&Block<'a>], label: &str) -> impl Iterator<Item = &'a RunRecord> {
    let own: Vec<&'a RunRecord> = blocks
        .iter()
        .flat_map(|b| b.runs.iter().copied())
        .filter(|r| r.is_contender() && r.strategy.label == label)
        .collect();
    own.into_iter()
}

/// The sessions that nobody is ranked by.
fn left_out(tests: &[&Block<'_>]) -> Option<GlanceLine> {
    let which = match tests.len() {
        0 => return None,
        1 => "1 session that tests one mechanism".to_string(),
        n => format!("{n} sessions that test one mechanism each"),
    };
    let text = format!("{which}; what they show stands in their own tables");
    Some(GlanceLine { what: "no ranks", text, alarm: false })
}

/// Sums over the sessions that all of those ranked went through; whoever stands in the way of half
/// of them is not ranked.
fn ranks(blocks: &[&Block<'_>]) -> Vec<GlanceLine> {
    let mut ranked = labels(blocks);
    let fits = |b: &Block<'_>, label: &str| {
        b.runs.iter().any(|r| r.strategy.label == label && r.is_contender() && r.is_whole())
    };
    let mut left_out = Vec::new();
    let common = loop {
        let common: Vec<&Block<'_>> =
            blocks.iter().copied().filter(|b| ranked.iter().all(|l| fits(b, l))).collect();
        if common.len() * 2 >= blocks.len() || ranked.is_empty() {
            break common;
        }
        let failures = |l: &&str| blocks.iter().filter(|b| !fits(b, l)).count();
        let worst = ranked
            .iter()
            .copied()
            .max_by_key(|l| (failures(l), std::cmp::Reverse(*l)))
            .expect("the loop ends when none is left");
        ranked.remove(worst);
        left_out.push(fmt::one_line(worst));
    };
    let idle = |l: &str| sessions(&common, l).all(|r| r.summary.compactions == 0);
    let (idle, ranked): (Vec<&str>, Vec<&str>) = ranked.into_iter().partition(|l| idle(l));
    if ranked.len() < 2 {
        return Vec::new();
    }
    let mut lines: Vec<GlanceLine> = metrics::shown(|m| &m.ranked)
        .into_iter()
        .filter_map(|(metric, how)| ranking(metric, how, &ranked, &common))
        .collect();
    let mut told = Vec::new();
    if blocks.len() > 1 && common.len() < blocks.len() {
        told.push(format!(
            "sums and means over the {} of {} sessions that every ranked strategy finished without \
             breaking a rule",
            common.len(),
            blocks.len()
        ));
    } else if blocks.len() > 1 {
        told.push(format!("sums and means over all {} sessions", blocks.len()));
    }
    if !left_out.is_empty() {
        told.push(format!("not ranked, broken too often: {}", left_out.join(", ")));
    }
    if !idle.is_empty() {
        told.push(format!(
            "not ranked, never compacted there: {}",
            idle.iter().map(|l| fmt::one_line(l)).collect::<Vec<_>>().join(", ")
        ));
    }
    if !told.is_empty() {
        lines.push(GlanceLine { what: "ranked", text: told.join("; "), alarm: false });
    }
    lines
}

/// The first few.
fn ranking(
    metric: &Metric,
    how: &Ranking,
    ranked: &[&str],
    common: &[&Block<'_>],
) -> Option<GlanceLine> {
    let value = |l: &&str| {
        let values: Vec<f64> = sessions(common, l).filter_map(|r| metric.value(r)).collect();
        let sum = values.iter().sum::<f64>();
        (!values.is_empty()).then(|| match how.over {
            Over::Sum => sum,
            Over::Mean => sum / values.len() as f64,
        })
    };
    let mut found: Vec<(&str, f64)> = ranked.iter().filter_map(|l| Some((*l, value(l)?))).collect();
    let upward = (metric.better == Better::Lower) == (how.named == Named::Best);
    found.sort_by(|a, b| {
        if upward { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) }.then(a.0.cmp(b.0))
    });
    let say = |x: f64| metric.unit.say(x);
    if found.len() < 2 || say(found[0].1) == say(found[found.len() - 1].1) {
        return None;
    }
    let show = |(l, x): &(&str, f64)| format!("{} {}", fmt::one_line(l), say(*x));
    Some(GlanceLine {
        what: how.what,
        text: found.iter().take(SHOWN).map(show).collect::<Vec<_>>().join(", "),
        alarm: false,
    })
}

/// What may be said about the sessions as a sample.
fn real(results: &Results, model: &str) -> Option<GlanceLine> {
    let found = stats::over_sessions(results);
    let d = found.iter().find(|d| d.model == model)?;
    let text = if d.sessions >= stats::MIN_SESSIONS {
        let words = stats::judged().enumerate().filter_map(|(i, m)| {
            let of = |v: Verdict| -> Vec<String> {
                d.strategies
                    .iter()
                    .filter(|s| s.figures.get(i).is_some_and(|f| f.verdict == v))
                    .map(|s| fmt::one_line(&s.strategy))
                    .collect()
            };
            let (better, worse) = (of(Verdict::Better), of(Verdict::Worse));
            let part = |word: &str, names: &[String]| {
                (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
            };
            let parts: Vec<String> =
                part("better", &better).into_iter().chain(part("worse", &worse)).collect();
            (!parts.is_empty()).then(|| format!("{} {}", m.heading(), parts.join(", ")))
        });
        let told: Vec<String> = words.collect();
        let told = if told.is_empty() { "none beyond chance".into() } else { told.join("; ") };
        format!("against {}: {told}", fmt::one_line(&d.baseline))
    } else {
        stats::caption(d)
    };
    Some(GlanceLine { what: "real", text, alarm: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{IntegrityFailure, Rule};
    use ctxbench_core::strategy::Standing;

    fn run(session: &str, label: &str, cost: f64, kept: f64, waited_s: u64) -> RunRecord {
        let mut r =
            RunRecord { model: "m".into(), status: Status::Completed, ..RunRecord::default() };
        r.scenario.id = session.into();
        r.strategy.label = label.into();
        r.strategy.name = label.into();
        if label == "reference" {
            r.strategy.standing = Standing::Hypothetical;
        }
        r.summary.compactions = u64::from(label != "reference");
        r.summary.cost_usd = cost;
        r.summary.needs_kept_pct = Some(kept);
        r.summary.blocked_ms = waited_s * 1000;
        r
    }

    fn sessions() -> Results {
        let runs = vec![
            run("one", "reference", 9.0, 100.0, 0),
            run("one", "a", 1.0, 50.0, 3),
            run("one", "b", 2.0, 70.0, 0),
            run("two", "reference", 9.0, 100.0, 0),
            run("two", "a", 1.5, 30.0, 4),
            run("two", "b", 2.0, 90.0, 1),
        ];
        Results { runs, ..Results::default() }
    }

    fn line(results: &Results, what: &str) -> GlanceLine {
        let all = glances(results);
        assert_eq!(all.len(), 1);
        all[0]
            .lines
            .iter()
            .find(|l| l.what == what)
            .cloned()
            .unwrap_or_else(|| panic!("no line {what}: {all:?}"))
    }

    #[test]
    fn sums_means_and_order_by_hand() {
        let r = sessions();
        assert_eq!(line(&r, "cheapest").text, "a $2.500, b $4.000");
        assert_eq!(line(&r, "keeps most facts").text, "b 80.0 %, a 40.0 %");
        assert_eq!(line(&r, "waits longest").text, "a 7.0 s, b 1.0 s");
        assert_eq!(line(&r, "real").text, "2 sessions: differences only");
        assert_eq!(
            line(&r, "broken"),
            GlanceLine {
                what: "broken",
                text: "nothing; every product finished".into(),
                alarm: false
            }
        );
        assert_eq!(line(&r, "ranked").text, "sums and means over all 2 sessions");
    }

    #[test]
    fn a_test_of_a_mechanism_ranks_nobody_and_its_failures_are_told() {
        let mut r = sessions();
        for run in r.runs.iter_mut().filter(|r| r.scenario.id == "two") {
            run.scenario.mechanism = true;
        }
        r.runs[5].status = Status::Overflow;
        assert_eq!(line(&r, "cheapest").text, "a $1.000, b $2.000", "of the first session");
        assert!(line(&r, "no ranks").text.starts_with("1 session that tests one mechanism"));
        assert!(line(&r, "broken").text.contains("not finished by b (1)"));
        assert!(!r.runs[4].can_win() && r.runs[1].can_win());
    }

    #[test]
    fn broken_rules_come_first_and_their_sessions_are_not_summed() {
        let mut r = sessions();
        r.runs[4].integrity.push(IntegrityFailure {
            rule: Rule::OverTheWindow,
            request: 1,
            detail: String::new(),
        });
        let first = &glances(&r)[0].lines[0];
        assert!(
            first.alarm
                && first.text == "INTEGRITY FAILURES of a (1); in brackets: in how many sessions",
            "{first:?}"
        );
        assert_eq!(
            line(&r, "cheapest").text,
            "a $1.000, b $2.000",
            "only the first session is whole for both"
        );
        assert_eq!(
            line(&r, "ranked").text,
            "sums and means over the 1 of 2 sessions that every ranked strategy finished without breaking \
             a rule"
        );
    }

    #[test]
    fn whoever_fails_everywhere_does_not_stop_the_others_from_being_ranked() {
        let mut r = sessions();
        for session in ["one", "two"] {
            let mut dead = run(session, "dead", 0.1, 100.0, 0);
            dead.status = Status::Overflow;
            r.runs.push(dead);
            let mut idle = run(session, "idle", 0.2, 100.0, 0);
            idle.summary.compactions = 0;
            r.runs.push(idle);
        }
        assert_eq!(line(&r, "cheapest").text, "a $2.500, b $4.000");
        let told = line(&r, "ranked").text;
        assert!(
            told.contains("broken too often: dead") && told.contains("never compacted there: idle"),
            "{told}"
        );
        assert_eq!(
            line(&r, "broken").text,
            "not finished by dead (2); in brackets: in how many sessions"
        );
    }

    #[test]
    fn twelve_sessions_tell_what_is_real() {
        let mut r = Results::default();
        for i in 0..12 {
            let id = format!("s{i:02}");
            r.runs.extend([
                run(&id, "reference", 9.0, 100.0, 0),
                run(&id, "a", 1.0, 50.0, 3),
                run(&id, "b", 9.0, 70.0, 3),
            ]);
        }
        assert_eq!(
            line(&r, "real").text,
            "against reference: cost $ better: a; needs kept % worse: a, b; waited s worse: a, b"
        );
    }
}
