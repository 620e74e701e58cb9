//! Published figures and the same figures by a replay (docs/published.md).

mod clearing;
mod idle;
mod masking;
mod prefix;
mod runner;
mod sessions;
mod summaries;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ctxbench_util::quantity;
use serde::Deserialize;

/// Minimum and maximum of a figure. Ours differ if a condition that is not published was varied.
type Span = (f64, f64);

/// Defines the replays of the trials, with a test for each.
macro_rules! trials {
    ($($name:ident: $replay:path,)*) => {
        static OURS: [(&str, LazyLock<Vec<Span>>); [$(stringify!($name)),*].len()] =
            [$((stringify!($name), LazyLock::new($replay))),*];
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*
    };
}

trials! {
    context_editing_in_a_hundred_turns: clearing::hundred_turns,
    research_agent_three_ways: clearing::research_agent,
    support_tickets_by_the_tool_runner: runner::tickets,
    masking_halves_the_cost: masking::swe_bench,
    masking_of_recorded_trajectories: masking::recorded,
    paths_in_a_models_summary: summaries::identifiers,
    compacting_while_idle: idle::idle,
    a_message_cut_in_the_middle: prefix::mutated,
    summary_requests_that_read_nothing: prefix::unread,
}

/// The file of publications, which describes its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    publication: Vec<Publication>,
    untried: Vec<Untried>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publication {
    by: String,
    link: String,
    claim: String,
    conditions: String,
    trial: Vec<Trial>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trial {
    name: String,
    tried: String,
    measure: Vec<Measure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measure {
    what: String,
    published: String,
    band: Span,
    unit: Unit,
    agrees: String,
    #[serde(default)]
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Untried {
    by: String,
    link: String,
    claim: String,
    because: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Saved,
    Share,
    Count,
}

impl Unit {
    /// Returns whether our figures agree with a band.
    fn verdict(self, (from, to): Span, (least, most): Span) -> &'static str {
        let side = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
        if least <= to && from <= most {
            "yes"
        } else if self == Unit::Saved && [to, least, most].map(side) == [side(from); 3] {
            "direction only"
        } else {
            "no"
        }
    }

    fn format(self, (least, most): Span) -> String {
        let one = |x: f64| match self {
            Unit::Count => quantity::grouped(x.round_ties_even() as u64, ','),
            Unit::Saved | Unit::Share => format!("{x:.1} %").replace('-', "−"),
        };
        if one(least) == one(most) {
            one(least)
        } else {
            format!("{} to {}", one(least), one(most))
        }
    }
}

/// Returns the saving in percent: `1 − with ÷ without`.
fn saved(with: f64, without: f64) -> f64 {
    100.0 * (1.0 - with / without)
}

fn single(figure: f64) -> Span {
    (figure, figure)
}

fn span(values: &[f64]) -> Span {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

impl Published {
    fn read() -> Published {
        toml::from_str(include_str!("../../data/published/figures.toml")).unwrap()
    }
}

impl Trial {
    /// Returns each measure with our figure.
    fn measured(&self) -> impl Iterator<Item = (&Measure, Span)> {
        let ours = OURS.iter().find(|(name, _)| *name == self.name).expect(&self.name).1.iter();
        assert_eq!(ours.len(), self.measure.len(), "{}", self.name);
        self.measure.iter().zip(ours.copied())
    }
}

/// Checks that every figure has its expected verdict, and that each difference has a reason.
fn holds(name: &str) {
    let file = Published::read();
    let trial = file.publication.iter().flat_map(|p| &p.trial).find(|t| t.name == name);
    for (m, ours) in trial.expect(name).measured() {
        let at = format!("{name}: {}: {} against {}", m.what, m.unit.format(ours), m.published);
        assert_eq!(m.unit.verdict(m.band, ours), m.agrees, "{at}");
        assert_eq!(m.agrees == "yes", m.why.is_empty(), "{at}: the reason");
    }
}

fn section(publication: &Publication, trial: &Trial) -> String {
    let Publication { by, link, claim, conditions, .. } = publication;
    let mut out = format!(
        "### `{}`\n\n[{by}]({link}): {claim}\n\n*Conditions:* {conditions}\n\n\
         *Tried with:* {}\n\n| | published | measured | agrees | why not |\n\
         |---|--:|--:|---|---|\n",
        trial.name, trial.tried
    );
    for (Measure { what, published, band, unit, why, .. }, ours) in trial.measured() {
        let (verdict, ours) = (unit.verdict(*band, ours), unit.format(ours));
        out += &format!("| {what} | {published} | {ours} | {verdict} | {why} |\n");
    }
    out + "\n"
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/published.md")
}

const BEGIN: &str = "<!-- begin generated: published -->\n";
const END: &str = "<!-- end generated: published -->\n";

fn generated() -> String {
    let Published { publication, untried } = Published::read();
    let all = publication.iter().flat_map(|p| p.trial.iter().map(move |t| section(p, t)));
    let tried: String = all.collect();
    let mut out = format!(
        "## Tried\n\n{tried}## Not tried\n\n\
         | publication | it says | it cannot be tried, because |\n|---|---|---|\n"
    );
    for Untried { by, link, claim, because } in untried {
        out += &format!("| [{by}]({link}) | {claim} | {because} |\n");
    }
    out
}

#[test]
fn the_page_says_what_was_measured() {
    let page = page();
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("a mark where the generated part begins");
    let (_, tail) = rest.split_once(END).expect("a mark where the generated part ends");
    let fresh = format!("{head}{BEGIN}{}{END}{tail}", generated());
    if std::env::var_os("CTXBENCH_WRITE").is_some() {
        std::fs::write(&page, &fresh).unwrap();
    } else {
        assert!(
            text == fresh,
            "docs/published.md is out of date; CTXBENCH_WRITE=1 cargo test -p ctxbench-tests \
             published:: writes it anew"
        );
    }
}

#[test]
fn a_verdict_by_hand() {
    for (unit, band, ours, verdict) in [
        // 84 % means 83.5 to 84.5. A range agrees if it overlaps.
        (Unit::Saved, (83.5, 84.5), (84.5, 84.5), "yes"),
        (Unit::Saved, (83.5, 84.5), (70.0, 90.0), "yes"),
        (Unit::Saved, (83.5, 84.5), (70.0, 80.0), "direction only"),
        (Unit::Saved, (83.5, 84.5), (-1.0, 80.0), "no"),
        (Unit::Saved, (-90.0, -84.0), (-300.0, -300.0), "direction only"),
        // No saving has no direction; neither has a count or a share.
        (Unit::Saved, (83.5, 84.5), (0.0, 0.0), "no"),
        (Unit::Count, (2.0, 2.0), (3.0, 3.0), "no"),
        (Unit::Share, (13.2, 68.5), (87.0, 87.0), "no"),
    ] {
        assert_eq!(unit.verdict(band, ours), verdict, "{band:?} {ours:?}");
    }
    assert_eq!(Unit::Count.format((82_171.0, 82_171.0)), "82,171");
    assert_eq!(Unit::Share.format((-0.25, 87.0)), "−0.2 % to 87.0 %");
    assert_eq!((saved(25.0, 100.0), span(&[2.0, 1.0])), (75.0, (1.0, 2.0)));
}
