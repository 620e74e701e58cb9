//! Advice for the terminal, at most 80 columns: the decision, the line to write, the table, and the
//! sessions left out.

use super::{
    Advice, Candidate, ChangeOutcome, Comparable, Decision, LeftOut, SettingChange, Sums, percent,
};
use crate::stats::Verdict;
use crate::table::wrap;
use crate::{fmt, front, grid};

const WIDTH: usize = 80;

/// Maximum width of the name of a value, characters.
const NAME: usize = 31;

const HEAD: [&str; 6] = ["", "$ in all", "change", "needs lost", "waited s", "compacted"];

const WORDS: &str = "* beyond chance (sign-flip test over sessions, Holm, 5 %)";
const FRONT: &str = "nothing else in the table costs less and loses fewer needs";
const NO_SETTING: &str = "there is no setting for it";

/// Formats the advice as text for the terminal.
pub fn to_text(a: &Advice) -> String {
    let mut out = Vec::new();
    wrapped(&mut out, "", [&a.sentence, &a.sure]);
    if let Some(advised) = advised(a) {
        for s in &advised.settings {
            let place = format!("Write in {} ({}):", s.place, s.documented);
            out.push(String::new());
            wrapped(&mut out, "", [&place]);
            out.push(format!("      {}", s.line));
        }
        let told = "tells whether it took effect.";
        let later = format!("Later, `ctxbench advise --product {}` {told}", advised.label);
        wrapped(&mut out, "", [&later]);
    }
    out.push(String::new());
    if a.sessions > 0 {
        let models: Vec<String> = a.models.iter().map(|m| fmt::one_line(m)).collect();
        let (product, sessions) = (fmt::one_line(&a.product), fmt::sessions(a.sessions));
        let head = format!("{product}, {sessions}, {}", models.join(", "));
        let recorded = format!("as recorded: {}", comparable(&a.recorded));
        let modelled = format!("our replay: {}", comparable(&a.modelled));
        wrapped(&mut out, "  ", [&head, &recorded, &modelled]);
        wrapped(&mut out, "  ", better_cache(a).as_ref());
    }
    wrapped(&mut out, "  ", [&a.effect]);
    if a.sessions > 0 {
        out.push(String::new());
        out.extend(table(a));
        wrapped(&mut out, "  ", &notes(a));
    }
    if !a.left_out.is_empty() {
        out.push(format!("\nLeft out: {}", fmt::sessions(a.left_out.len())));
        let named =
            |l: &LeftOut| format!("  {}: {}", fmt::one_line(&l.session), fmt::one_line(&l.why));
        wrapped(&mut out, "    ", &a.left_out.iter().map(named).collect::<Vec<_>>());
    }
    if a.sessions > 0 {
        out.push("\nLimits".into());
        let limits = a.limits.iter().map(|limit| format!("  {limit}"));
        wrapped(&mut out, "  ", &limits.collect::<Vec<_>>());
    }
    out.join("\n") + "\n"
}

fn wrapped<'a>(out: &mut Vec<String>, indent: &str, texts: impl IntoIterator<Item = &'a String>) {
    let texts = texts.into_iter().filter(|t| !t.is_empty());
    out.extend(texts.flat_map(|text| wrap(text, WIDTH, indent)));
}

/// The advised change.
fn advised(a: &Advice) -> Option<&Candidate> {
    let Decision::Change(label) = &a.decision else { return None };
    a.changes.iter().map(|o| &o.change).find(|c| c.label == *label)
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

/// The table, with the lines as drawn.
fn table(a: &Advice) -> Vec<String> {
    let now = cells("today".into(), &a.now, &a.now, [""; 2]);
    let rows = std::iter::once(now).chain(a.changes.iter().map(|o| row(o, &a.now)));
    grid::draw(HEAD.map(String::from).into(), rows, |i| i > 0, |i| (u16::from(i > 0), 0))
}

fn cells(name: String, then: &Sums, now: &Sums, marks: [&str; 2]) -> Vec<String> {
    let lost = match then.needs {
        0 => "no needs".into(),
        n if std::ptr::eq(then, now) => format!("{} of {n}", then.lost),
        _ => format!("{}{}", then.lost, marks[1]),
    };
    let change =
        if std::ptr::eq(then, now) { String::new() } else { percent(now, then) + marks[0] };
    vec![
        name,
        fmt::usd(then.cost_usd),
        change,
        lost,
        fmt::count(then.waited_ms as f64 / 1e3),
        then.compactions.to_string(),
    ]
}

fn row(o: &ChangeOutcome, now: &Sums) -> Vec<String> {
    let mark = if o.front { format!("{} ", front::MARK) } else { String::new() };
    let name = fmt::elide(&(mark + &name(&o.change)), NAME);
    let sure = |i: usize| match o.figures[i].verdict {
        Verdict::Better | Verdict::Worse => "*",
        _ => "",
    };
    match &o.then {
        Some(then) => cells(name, then, now, [sure(super::COST), sure(super::KEPT)]),
        None => std::iter::once(name).chain(vec!["n/a".to_string(); HEAD.len() - 1]).collect(),
    }
}

/// The values of a candidate; of a combination the second value behind `+`.
fn name(c: &Candidate) -> String {
    let one = |s: &SettingChange| format!("{}={}", s.setting, s.value);
    match &c.settings[..] {
        [first, second] => format!("{} + {}", first.value, one(second)),
        all => all.iter().map(one).collect(),
    }
}

fn notes(a: &Advice) -> Vec<String> {
    let mut out = Vec::new();
    if a.changes.iter().any(|o| o.front) {
        out.push(format!("{} {FRONT}", front::MARK));
    }
    if a.changes.iter().flat_map(|o| &o.figures).any(|f| f.p.is_some()) {
        out.push(WORDS.into());
    }
    out.extend(a.changes.iter().filter(|o| o.failed > 0).map(|o| {
        let ranked = if o.then.is_some() { "" } else { "; not ranked" };
        format!("{}: {} not finished{ranked}", name(&o.change), fmt::sessions(o.failed))
    }));
    let is_given = |o: &&ChangeOutcome| o.change.settings.iter().all(|s| !s.line.is_empty());
    out.extend(
        a.changes
            .iter()
            .filter(|o| !is_given(o))
            .map(|o| format!("{}: {NO_SETTING}", name(&o.change))),
    );
    if let Some(o) = a.changes.iter().find(|o| o.change.extends.is_some()) {
        let first = &o.change.settings[0];
        out.push(format!("{} + …: together with {}={0}", first.value, first.setting));
    }
    out
}
