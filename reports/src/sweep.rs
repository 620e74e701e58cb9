//! A table for each swept setting: cost, recall and waiting of its values.

use std::collections::{BTreeMap, BTreeSet};

use ctxbench_core::strategy::Standing;
use ctxbench_util::natural;

use crate::front::{self, Pooled};
use crate::record::{Results, StrategyInfo};
use crate::sheet::{Group, Sheet};
use crate::stats::{self, StrategyDifference};
use crate::terms::{Terms, terms};
use crate::{seeds, view};

/// Minimum number of given values. A single value in addition to the default is a comparison, not a
/// sweep.
const FEWEST: usize = 2;

/// Label of a row with the default.
pub(crate) const DEFAULT: &str = "default";

const NOTE: &str = "A row per value; change against the baseline, over the sessions that both \
     finished, with its interval from eight sessions on. What neighbours differ by may be chance.";

/// Values of one setting, with all other settings equal.
pub(crate) struct Curve<'a> {
    /// Label without the setting.
    pub(crate) rest: String,
    /// Value and label, ordered by value, the default first.
    pub(crate) rows: Vec<(&'a str, &'a str)>,
}

/// A setting of a strategy with several values.
pub(crate) struct Swept<'a> {
    /// The strategy, with its version.
    pub(crate) name: String,
    pub(crate) setting: &'a str,
    pub(crate) curves: Vec<Curve<'a>>,
}

/// All swept settings of one model (and one summariser).
pub(crate) struct Sweeps<'a> {
    pub(crate) swept: Vec<Swept<'a>>,
    pub(crate) pooled: Pooled<'a>,
}

/// A table per model, summariser, strategy and swept setting.
pub(crate) fn sheets(results: &Results) -> Vec<Sheet> {
    let results = &*seeds::averaged(results);
    let blocks = view::blocks(results);
    let sheets = |t: &Terms<'_, '_>| {
        let (found, name) = (Sweeps::from_terms(t), format!("{}, {}", t.name(), t.scope()));
        found.into_iter().flat_map(move |s| s.sheets(&name)).collect::<Vec<_>>()
    };
    terms(&blocks).iter().flat_map(sheets).collect()
}

impl<'a> Sweeps<'a> {
    /// Returns `None` if no setting was swept.
    pub(crate) fn from_terms(terms: &Terms<'_, 'a>) -> Option<Sweeps<'a>> {
        let runs = terms.evidence();
        // A value that cannot exist with this model has a row with the reason.
        let tried = runs.iter().filter(|r| r.strategy.standing == Standing::Contender);
        let swept = swept(tried.map(|r| &r.strategy));
        if swept.is_empty() {
            return None;
        }
        Some(Sweeps { swept, pooled: Pooled::from_runs(&runs)? })
    }

    /// Row of a label, and true if it is on the front.
    pub(crate) fn row(&self, label: &str) -> (Option<&StrategyDifference>, bool) {
        (self.pooled.differences.row(label), self.pooled.is_on_front(label))
    }

    fn sheets(&self, terms: &str) -> Vec<Sheet> {
        let d = &self.pooled.differences;
        let sheet = |s: &Swept<'_>| {
            let mut head = vec![s.setting.to_string(), "front".into(), "compacted".into()];
            head.extend(stats::judged().map(|m| m.name.to_string()));
            let groups = s.curves.iter().map(|c| Group {
                name: if s.curves.len() > 1 { c.rest.clone() } else { String::new() },
                rows: c.rows.iter().map(|(v, label)| self.cells(v, label)).collect(),
            });
            Sheet {
                title: format!("{}: {} ({terms})", s.name, s.setting),
                note: format!(
                    "{NOTE} Baseline: {}. {} = {}.",
                    d.baseline,
                    front::MARK,
                    front::HELP
                ),
                head,
                groups: groups.collect(),
            }
        };
        self.swept.iter().map(sheet).collect()
    }

    fn cells(&self, value: &str, label: &str) -> Vec<String> {
        let d = &self.pooled.differences;
        let (row, on_front) = self.row(label);
        let mut out = vec![value.to_string()];
        out.push(if on_front { front::MARK.into() } else { String::new() });
        match row {
            None => out.extend((0..=stats::judged().count()).map(|_| "n/a".to_string())),
            Some(s) => {
                let fewer = if s.sessions < d.sessions {
                    format!(" of {}", d.sessions)
                } else {
                    String::new()
                };
                out.push(stats::describe_exposure(s) + &fewer);
                out.extend(
                    s.figures.iter().zip(stats::judged()).map(|(f, m)| stats::position(d, f, m)),
                );
            }
        }
        out
    }
}

/// Settings with several values, by strategy with version and by setting.
fn swept<'a>(all: impl Iterator<Item = &'a StrategyInfo>) -> Vec<Swept<'a>> {
    let distinct: BTreeMap<&str, &StrategyInfo> = all.map(|s| (s.label.as_str(), s)).collect();
    let settings: BTreeSet<&str> =
        distinct.values().flat_map(|s| s.given.keys()).map(String::as_str).collect();
    let mut out: BTreeMap<(String, &str), Vec<Curve<'_>>> = BTreeMap::new();
    for setting in settings {
        let mut curves: BTreeMap<(String, String), Vec<(&str, &str)>> = BTreeMap::new();
        for (label, s) in &distinct {
            let value = s.given.get(setting).map_or(DEFAULT, String::as_str);
            curves.entry(without(s, setting)).or_default().push((value, label));
        }
        for ((name, rest), mut rows) in curves {
            if rows.iter().filter(|(v, _)| *v != DEFAULT).count() < FEWEST {
                continue;
            }
            rows.sort_by(|(a, _), (b, _)| by_value(a, b));
            out.entry((name, setting)).or_default().push(Curve { rest, rows });
        }
    }
    let swept = |((name, setting), curves)| Swept { name, setting, curves };
    out.into_iter().map(swept).collect()
}

/// Compares values: the default comes first, then numbers of tokens, shares of the window, and
/// text.
pub(crate) fn by_value(a: &str, b: &str) -> std::cmp::Ordering {
    let kind = |v: &str| (v != DEFAULT, v.parse::<f64>().is_err(), !v.ends_with('%'));
    kind(a).cmp(&kind(b)).then_with(|| natural::order(&format!("={a}"), &format!("={b}")))
}

/// Strategy with its version, and that strategy with its other settings.
fn without(s: &StrategyInfo, setting: &str) -> (String, String) {
    let text = |skip: &str| {
        let kept = s.given.iter().filter(|(k, _)| *k != skip);
        kept.map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
    };
    let name = s.label.replacen(&format!(":{}", text("")), "", 1);
    let others = text(setting);
    let rest = if others.is_empty() { name.clone() } else { format!("{name}:{others}") };
    (name, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RunRecord, Status};
    use crate::testing;

    fn reference(session: &str) -> RunRecord {
        testing::scored(session, "reference", 4.0, 100.0)
    }

    #[test]
    fn values_stand_in_order_with_their_figures() {
        let runs = vec![
            reference("s"),
            testing::with_settings("s", &[], 3.0, 95.0),
            testing::with_settings("s", &[("limit", "120000")], 2.0, 90.0),
            testing::with_settings("s", &[("limit", "90000")], 1.0, 70.0),
            testing::with_settings("s", &[("limit", "50%")], 2.5, 80.0),
        ];
        let found = sheets(&testing::of(runs));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title, "codex: limit (claude-sonnet-4-6, 1 session)");
        let cells: Vec<(&str, &str, &str)> =
            found[0].rows().map(|r| (&*r[0], &*r[1], &*r[3])).collect();
        assert_eq!(
            cells,
            [
                ("default", "◆", "$3.000"),
                ("90000", "◆", "$1.000"),
                ("120000", "◆", "$2.000"),
                ("50%", "", "$2.500"),
            ]
        );
    }

    #[test]
    fn a_value_that_cannot_exist_has_a_row() {
        let mut runs = vec![
            reference("s"),
            testing::with_settings("s", &[("remote", "false")], 3.0, 95.0),
            testing::with_settings("s", &[("remote", "true")], 0.0, 0.0),
        ];
        runs[2].status = Status::NotApplicable;
        let found = sheets(&testing::of(runs));
        let cells: Vec<(&str, &str)> = found[0].rows().map(|r| (&*r[0], &*r[3])).collect();
        assert_eq!(cells, [("false", "$3.000"), ("true", "n/a")]);
    }

    #[test]
    fn a_second_setting_parts_the_table_and_one_value_makes_none() {
        let one = vec![
            reference("s"),
            testing::with_settings("s", &[], 3.0, 95.0),
            testing::with_settings("s", &[("limit", "9")], 2.0, 9.0),
        ];
        assert!(sheets(&testing::of(one)).is_empty());
        let mut runs = vec![reference("s"), reference("t")];
        for session in ["s", "t"] {
            for (limit, keep) in [("5", "1"), ("10", "1"), ("5", "2"), ("10", "2")] {
                runs.push(testing::with_settings(
                    session,
                    &[("keep", keep), ("limit", limit)],
                    2.0,
                    50.0,
                ));
            }
        }
        runs.iter_mut().for_each(|r| r.scenario.recorded = true);
        let found = sheets(&testing::of(runs));
        let titles: Vec<&str> = found.iter().map(|s| s.title.as_str()).collect();
        let of = |s: &str| format!("codex: {s} (claude-sonnet-4-6, 2 sessions)");
        assert_eq!(titles, [of("keep"), of("limit")]);
        let groups: Vec<&str> = found[1].groups.iter().map(|g| g.name.as_str()).collect();
        assert_eq!(groups, ["codex:keep=1", "codex:keep=2"]);
        let values: Vec<&str> = found[1].rows().map(|r| r[0].as_str()).collect();
        assert_eq!(values, ["5", "10", "5", "10"]);
    }
}
