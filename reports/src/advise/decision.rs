//! The decision about one product, with its sentences.

use super::{COST, ChangeOutcome, Decision, KEPT, SettingChange, Sums, worth};
use crate::metrics::Metric;
use crate::stats::{self, CENT, Figure, MIN_SESSIONS, Verdict};
use crate::{fmt, front};

/// Returns the decision with its sentence, and how sure it is: empty unless a value is advised.
pub(super) fn decide(
    product: &str,
    sessions: usize,
    now: &Sums,
    outcomes: &[ChangeOutcome],
) -> (Decision, String, String) {
    let name = fmt::one_line(product);
    let over = fmt::sessions(sessions);
    let undecided = |decision, text: String| (decision, text, String::new());
    let seen = outcomes.iter().map(|o| o.differs).max().unwrap_or(0);
    if seen == 0 {
        let none = if now.compactions == 0 { "it compacts in none, and " } else { "" };
        let text =
            format!("No change for {name}: over {over} {none}no value tried changes a request.");
        return undecided(Decision::NothingChanges, text);
    }
    if seen < MIN_SESSIONS {
        let seen = match seen == sessions {
            true => over,
            false => format!("{seen} of {over} change with any value"),
        };
        let best = outcomes.iter().filter(|o| o.front && o.is_settable() && o.differs > 0);
        let so_far = best.filter_map(|o| {
            let then = o.then.as_ref().filter(|then| then.cost_usd < now.cost_usd)?;
            Some((worth(now, then), format_so_far(named(o), now, then)))
        });
        let so_far = so_far.reduce(|a, b| if b.0 > a.0 { b } else { a });
        let so_far = so_far.map_or(String::new(), |(_, text)| text);
        let text = format!("Not enough for {name}: {seen}, {MIN_SESSIONS} needed.{so_far}");
        return undecided(Decision::TooFew, text);
    }
    let eligible = |figure: usize| {
        outcomes.iter().filter_map(move |o| {
            let is_better = o.figures[figure].verdict == Verdict::Better;
            (o.front && o.is_settable() && is_better).then_some((o, o.then.as_ref()?))
        })
    };
    let saving = || eligible(COST).filter(|(o, then)| then.cost_usd < now.cost_usd && o.pays);
    let best_saving = saving()
        .filter(|(_, then)| is_worth_its_loss(now, then))
        .reduce(|a, b| if worth(now, b.1) > worth(now, a.1) { b } else { a });
    // Dollars for a point of recall, in place of dollars that a lost point saves.
    let price = |then: &Sums| (then.cost_usd - now.cost_usd) / (then.kept_pct() - now.kept_pct());
    let best = best_saving.or_else(|| {
        let keeping = eligible(KEPT).filter(|(_, then)| then.kept_pct() > now.kept_pct());
        keeping.reduce(|a, b| if price(b.1) < price(a.1) { b } else { a })
    });
    let Some((best, then)) = best else {
        let why = match saving().next() {
            None => "saves dollars, or keeps more of what is needed, beyond chance".into(),
            Some((o, then)) => format!(
                "is worth what it forgets: setting {} changes the bill by {} for {:.1} points of recall",
                named(o),
                percent(now.cost_usd, then.cost_usd),
                now.kept_pct() - then.kept_pct()
            ),
        };
        let text = format!("No change for {name}: over {over} no value tried {why}.");
        return undecided(Decision::NoChange, text);
    };
    let text = format!(
        "Set {} for {name}{}: over {over} ${} instead of ${} ({}). {}",
        named(best),
        sizes(now, then),
        fmt::usd(then.cost_usd),
        fmt::usd(now.cost_usd),
        percent(now.cost_usd, then.cost_usd),
        format_price(now, then)
    );
    let sure: Vec<String> =
        front::metrics().map(|(i, m)| format_figure(&best.figures[i], m)).collect();
    let sure = format!("How sure: per session {}.", sure.join(", "));
    (Decision::Change(best.change.label.clone()), text, sure)
}

/// Names a change, such as `prune to true`.
fn named(o: &ChangeOutcome) -> String {
    let set = |s: &SettingChange| format!("{} to {}", s.setting, s.value);
    o.change.settings.iter().map(set).collect::<Vec<_>>().join(" and ")
}

/// Formats the effect of a change in too few sessions, after a space.
fn format_so_far(change: String, now: &Sums, then: &Sums) -> String {
    let both = now.per_session.iter().zip(&then.per_session);
    let cheaper = both.filter(|(now, then)| then.cost_usd < now.cost_usd).count();
    let [kept, before] = [then, now].map(|s| fmt::pct(s.kept_pct()));
    let recall = match kept == before {
        true => format!("recall stays {kept} %"),
        false => format!("recall {kept} % instead of {before} %"),
    };
    let at = sizes(now, then);
    let comma = if at.is_empty() { "" } else { "," };
    format!(
        " So far, setting {change}{at}{comma} changes the bill by {} (cheaper in {cheaper} of {}), {recall}.",
        percent(now.cost_usd, then.cost_usd),
        fmt::sessions(now.per_session.len()),
    )
}

/// Minimum saving for each lost point of recall, percent of the bill.
const WORTH_PCT: f64 = 0.5;

fn is_worth_its_loss(now: &Sums, then: &Sums) -> bool {
    let saved_pct = (1.0 - then.cost_usd / now.cost_usd) * 100.0;
    saved_pct >= WORTH_PCT * (now.kept_pct() - then.kept_pct())
}

/// Formats the change of dollars, per cent.
pub(super) fn percent(now: f64, then: f64) -> String {
    let change = (now > 0.0).then(|| (then / now - 1.0) * 100.0);
    fmt::known(change, |x| match fmt::signed(x, fmt::pct) {
        none if none == "±0" => none,
        some => some + " %",
    })
}

/// Formats at how many tokens a change compacts, if that is elsewhere than today.
fn sizes(now: &Sums, then: &Sums) -> String {
    let [now, then] = [now, then].map(|s| s.compacts_at.map(|n| fmt::tokens(n as f64)));
    match (now, then) {
        (Some(now), Some(then)) if now != then => {
            format!(", which then compacts at about {then} tokens instead of {now}")
        }
        _ => String::new(),
    }
}

/// Formats what a change costs: recall, dollars, waiting.
fn format_price(now: &Sums, then: &Sums) -> String {
    let waited = (then.waited_ms as f64 - now.waited_ms as f64) / 1e3;
    let usd = then.cost_usd - now.cost_usd;
    let (kept, before) = (fmt::pct(then.kept_pct()), fmt::pct(now.kept_pct()));
    let recall = format!("recall {kept} % instead of {before} %");
    let is_lower = then.kept_pct() < now.kept_pct();
    let parts = [
        (kept != before && is_lower).then(|| recall.clone()),
        (usd > CENT).then(|| format!("${} more", fmt::usd(usd))),
        (waited >= 0.5).then(|| format!("{} s more waiting in all", fmt::count(waited))),
    ];
    let price: Vec<String> = parts.into_iter().flatten().collect();
    let gain = if kept == before || is_lower { "" } else { &format!(" The gain: {recall}.") };
    match price.is_empty() {
        true => format!("It has no price: recall does not fall, and no more waiting.{gain}"),
        false => format!("The price: {}.{gain}", price.join(", ")),
    }
}

/// Formats a change with its verdict.
fn format_figure(figure: &Figure, metric: &Metric) -> String {
    let change = format!("{} {}", metric.name, stats::change_within(figure, metric));
    match figure.verdict {
        Verdict::Equal => format!("{} unchanged", metric.name),
        Verdict::Better | Verdict::Worse => change,
        Verdict::Unresolved => format!("{change}, which chance may explain"),
        Verdict::DifferenceOnly => format!("{change}, in too few sessions to judge"),
    }
}

pub(super) fn without_sessions(product: &str, left_out: usize) -> String {
    let name = fmt::one_line(product);
    match left_out {
        0 => format!("No advice for {name}: no recording of it is here."),
        1 => format!("No advice for {name}: its one session cannot be used."),
        n => format!("No advice for {name}: none of its {n} sessions can be used."),
    }
}
