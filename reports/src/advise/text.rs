//! Advice for the terminal: the decision, the table, the configuration to write, and the sessions
//! left out.

use super::{Advice, ChangeOutcome, Comparable, Decision, Sums};
use crate::{fmt, front, grid, stats};

const HEAD: [&str; 7] =
    ["each alone", "$ in all", "median $", "waited s", "needs lost", "compacted", "changed"];

const LEGEND: &str = "In brackets the change; median $: what a session costs, and its change;\n\
                      changed: sessions in which any request differs.";
const WORDS: &str = "BETTER, WORSE: beyond chance (sign-flip test over sessions, Holm, 5 %).";
const FRONT: &str = "by the mean change of a session, in dollars and in recall, no other value \
                     tried\nis at least as good in both and better in one";

/// Formats the advice as text for the terminal.
pub fn to_text(a: &Advice) -> String {
    let mut lines = vec![a.sentence.clone()];
    if a.sessions > 0 {
        let models: Vec<String> = a.models.iter().map(|m| fmt::one_line(m)).collect();
        let (product, sessions) = (fmt::one_line(&a.product), fmt::sessions(a.sessions));
        lines.push(format!("\n{product}, {sessions}, {}", models.join(", ")));
        lines.push(format!("as recorded:  {}", comparable(&a.recorded)));
        lines.push(format!("our replay:   {}", comparable(&a.modelled)));
        lines.extend(better_cache(a));
        lines.extend(table(a));
        lines.push(LEGEND.into());
        if a.changes.iter().flat_map(|o| &o.figures).any(|f| f.p.is_some()) {
            lines.push(WORDS.into());
        }
        if a.changes.iter().any(|o| o.front) {
            lines.push(format!("{} = {FRONT}.", front::MARK));
        }
        lines.extend(unfinished(a));
    }
    lines.extend(to_write(a));
    if !a.left_out.is_empty() {
        lines.push(format!("\nLeft out: {}", fmt::sessions(a.left_out.len())));
        let left_out = a.left_out.iter();
        lines.extend(
            left_out.map(|l| format!("  {}: {}", fmt::one_line(&l.session), fmt::one_line(&l.why))),
        );
    }
    if a.sessions > 0 {
        lines.push("\nLimits".into());
        lines.extend(a.limits.iter().map(|limit| format!("  {limit}")));
    }
    lines.join("\n") + "\n"
}

fn comparable(c: &Comparable) -> String {
    format!(
        "${}, {}, {} read from the cache",
        fmt::usd(c.cost_usd),
        fmt::pluralize(c.compactions, "compaction"),
        fmt::known(c.cache_read_pct, |pct| format!("{pct:.1} %"))
    )
}

/// Tells what the recordings paid for a cache that was worse than the modelled one. No setting saves
/// it, so it is part of no change.
fn better_cache(a: &Advice) -> Option<String> {
    let (recorded, modelled) = (a.recorded.cache_read_pct?, a.modelled.cache_read_pct?);
    let more = a.recorded.cost_usd - a.modelled.cost_usd;
    (modelled > recorded && more > 0.0).then(|| {
        format!(
            "a cache that is read as in our replay would have saved ${}; no setting below does",
            fmt::usd(more)
        )
    })
}

fn table(a: &Advice) -> Vec<String> {
    let usd = fmt::known(a.median_usd, fmt::usd);
    let now = vec![
        "as it is set now".to_string(),
        fmt::usd(a.now.cost_usd),
        usd,
        fmt::count(a.now.waited_ms as f64 / 1e3),
        lost(&a.now),
        a.now.compactions.to_string(),
        String::new(),
    ];
    let rows = std::iter::once(now).chain(a.changes.iter().map(row));
    grid::draw(HEAD.map(String::from).into(), rows, |i| i > 0, |i| (u16::from(i > 0), 1))
}

/// Number of needs with a lost fact, as a table cell.
fn lost(s: &Sums) -> String {
    match s.needs {
        0 => "no needs".into(),
        n => format!("{} of {n}", s.lost),
    }
}

fn row(o: &ChangeOutcome) -> Vec<String> {
    let mark = if o.front { format!("{} ", front::MARK) } else { String::new() };
    let name = format!("{mark}{}={}", o.change.setting, o.change.value);
    if o.finished == 0 || o.differs == 0 {
        let mut none = vec![name];
        none.resize(HEAD.len() - 1, if o.finished == 0 { "n/a" } else { "" }.into());
        none.push(format!("{} of {}", o.differs, o.finished));
        return none;
    }
    let (now, then) = (&o.now, &o.then);
    let word = |column: &str| {
        let verdict = o.figures.iter().find(|f| f.column == column).map(|f| f.verdict);
        match verdict.map(stats::word) {
            None | Some("" | "equal" | "UNRESOLVED") => String::new(),
            Some(word) => format!(" {word}"),
        }
    };
    let median = stats::judged()
        .zip(&o.figures)
        .find(|(m, _)| m.column == "cost_usd")
        .map_or("n/a".into(), |(m, f)| stats::median(f, m));
    let signed = |x: i64| fmt::signed(x as f64, fmt::count);
    let change = |now: u64, then: u64| signed(then as i64 - now as i64);
    let waited = (then.waited_ms as f64 - now.waited_ms as f64) / 1e3;
    let needs = match then.needs {
        0 => "no needs".into(),
        _ => {
            let change = change(now.lost as u64, then.lost as u64);
            format!("{} ({change}){}", then.lost, word("recall_pct"))
        }
    };
    vec![
        name,
        format!(
            "{} ({})",
            fmt::usd(then.cost_usd),
            fmt::signed(then.cost_usd - now.cost_usd, fmt::usd)
        ),
        median + &word("cost_usd"),
        format!(
            "{} ({})",
            fmt::count(then.waited_ms as f64 / 1e3),
            fmt::signed(waited, fmt::count)
        ),
        needs,
        format!("{} ({})", then.compactions, change(now.compactions, then.compactions)),
        format!("{} of {}", o.differs, o.finished),
    ]
}

/// Notes on values with sums over fewer sessions, because some sessions did not finish.
fn unfinished(a: &Advice) -> impl Iterator<Item = String> {
    a.changes.iter().filter(|o| o.finished < a.sessions).map(|o| {
        format!(
            "{}={}: {} not finished; its figures are of the other {}.",
            o.change.setting,
            o.change.value,
            fmt::sessions(a.sessions - o.finished),
            o.finished
        )
    })
}

/// Configuration lines for the advised value, or for the values on the front.
fn to_write(a: &Advice) -> Vec<String> {
    let advised = match &a.decision {
        Decision::NoSession | Decision::NothingChanges => return vec![],
        Decision::Change(label) => Some(label),
        _ => None,
    };
    let wanted = |o: &&ChangeOutcome| o.front || Some(&o.change.label) == advised;
    let mut all: Vec<&ChangeOutcome> = a.changes.iter().filter(wanted).collect();
    all.sort_by_key(|o| Some(&o.change.label) != advised);
    let heading = match (advised, all.len()) {
        (_, 0) => return vec![],
        (Some(_), 1) => "\nWhat to write",
        (Some(_), _) => {
            "\nWhat to write: one of these, the advised value first, then others on the front"
        }
        (None, 1) => "\nTo try the value that is on the front, write",
        (None, _) => "\nTo try a value that is on the front, write one of these",
    };
    let mut lines = vec![heading.to_string()];
    let mut told: Option<(&str, &str)> = None;
    for c in all.into_iter().map(|o| &o.change) {
        // Print the place once for all values of one setting.
        if told != Some((&c.setting, &c.place)) {
            lines.push(format!("  in {} ({}):", c.place, c.documented));
            told = Some((&c.setting, &c.place));
        }
        lines.push(format!("      {}", c.line));
    }
    lines
}
