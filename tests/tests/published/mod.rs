//! Published figures, reproduced: source, claim, conditions, session, and result of each.
//! `CTXBENCH_WRITE=1 cargo test --test all published::` writes the tables of `docs/published.md`.

mod clearing;
mod idle;
mod masking;
mod prefix;
mod runner;
mod sessions;
mod summaries;
mod untried;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ctxbench_util::quantity;

/// Defines the publications with figures that a replay can reproduce, with a test for each.
macro_rules! figures {
    ($($name:ident: $figure:expr,)*) => {
        static TRIED: [Tried; [$(stringify!($name)),*].len()] =
            [$(Tried::of(stringify!($name), $figure)),*];
        $(#[test]
        fn $name() {
            TRIED.iter().find(|t| t.name == stringify!($name)).unwrap().holds();
        })*
    };
}

figures! {
    context_editing_in_a_hundred_turns: clearing::HUNDRED_TURNS,
    research_agent_three_ways: clearing::RESEARCH_AGENT,
    support_tickets_by_the_tool_runner: runner::TICKETS,
    masking_halves_the_cost: masking::SWE_BENCH,
    masking_of_recorded_trajectories: masking::RECORDED,
    paths_in_a_models_summary: summaries::IDENTIFIERS,
    compacting_while_idle: idle::IDLE,
    a_message_cut_in_the_middle: prefix::MUTATED,
    summary_requests_that_read_nothing: prefix::UNREAD_SUMMARIES,
}

/// A publication and its reproduction.
struct Figure {
    /// Authors, source and date.
    by: &'static str,
    link: &'static str,
    /// Claim of the publication, paraphrased.
    claim: &'static str,
    /// Conditions of the measurement, as far as they are published.
    conditions: &'static str,
    /// Session and strategies that reproduce it, with the assumptions.
    tried: &'static str,
    trial: fn() -> Vec<Measure>,
}

/// Result of a reproduction.
struct Tried {
    name: &'static str,
    figure: Figure,
    measured: OnceLock<Vec<Measure>>,
}

/// A published figure and our figure.
struct Measure {
    what: &'static str,
    /// Figure as published.
    published: &'static str,
    /// Range in which a figure agrees: the published interval, or half a unit of the last printed
    /// digit.
    band: (f64, f64),
    /// Minimum and maximum of our measurements. They differ if a condition that is not published
    /// was varied.
    ours: (f64, f64),
    unit: Unit,
    expected: Verdict,
    /// Reason for a difference; empty if the figures agree.
    why: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Saving in percent of the figure without; negative = more.
    Saved,
    /// Share of a whole in percent.
    Share,
    /// Number of tokens, requests or compactions.
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Our figure is within the band.
    Agrees,
    /// Our figure is outside the band, but on the same side of zero.
    Direction,
    Differs,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Agrees => "yes",
            Verdict::Direction => "direction only",
            Verdict::Differs => "no",
        }
    }
}

impl Measure {
    /// Creates a figure that agrees.
    fn new(
        unit: Unit,
        what: &'static str,
        published: &'static str,
        band: (f64, f64),
        ours: (f64, f64),
    ) -> Measure {
        Measure { what, published, band, ours, unit, expected: Verdict::Agrees, why: "" }
    }

    /// Creates a number for which only the published one agrees.
    fn exact(what: &'static str, published: &'static str, number: f64, ours: f64) -> Measure {
        Measure::new(Unit::Count, what, published, single(number), single(ours))
    }

    /// Expects another verdict, for a reason.
    fn but(self, expected: Verdict, why: &'static str) -> Measure {
        Measure { expected, why, ..self }
    }

    fn verdict(&self) -> Verdict {
        let ((from, to), (least, most)) = (self.band, self.ours);
        let side = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
        if least <= to && from <= most {
            Verdict::Agrees
        } else if self.unit == Unit::Saved && [to, least, most].map(side) == [side(from); 3] {
            Verdict::Direction
        } else {
            Verdict::Differs
        }
    }

    /// Formats our range of values.
    fn format_ours(&self) -> String {
        let (least, most) = self.ours;
        let one = |x: f64| match self.unit {
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

/// Returns the range of a single figure.
fn single(figure: f64) -> (f64, f64) {
    (figure, figure)
}

/// Returns the minimum and the maximum.
fn span(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

impl Tried {
    const fn of(name: &'static str, figure: Figure) -> Tried {
        Tried { name, figure, measured: OnceLock::new() }
    }

    fn measured(&self) -> &[Measure] {
        self.measured.get_or_init(self.figure.trial)
    }

    /// Checks that every figure has its expected verdict, and that each difference has a reason.
    fn holds(&self) {
        assert!(!self.measured().is_empty(), "{}", self.name);
        for m in self.measured() {
            let at =
                format!("{}: {}: {} against {}", self.name, m.what, m.format_ours(), m.published);
            assert_eq!(m.verdict(), m.expected, "{at}");
            assert_eq!(m.expected == Verdict::Agrees, m.why.is_empty(), "{at}: the reason");
        }
    }

    /// Formats the section of the page about this publication.
    fn section(&self) -> String {
        let (name, Figure { by, link, claim, conditions, tried, .. }) = (self.name, &self.figure);
        let mut out = format!(
            "### `{name}`\n\n[{by}]({link}): {claim}\n\n*Conditions:* {conditions}\n\n\
             *Tried with:* {tried}\n\n| | published | measured | agrees | why not |\n\
             |---|--:|--:|---|---|\n"
        );
        for m in self.measured() {
            let (word, format_ours) = (m.verdict().word(), m.format_ours());
            out +=
                &format!("| {} | {} | {format_ours} | {word} | {} |\n", m.what, m.published, m.why);
        }
        out + "\n"
    }
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/published.md")
}

const BEGIN: &str = "<!-- begin generated: published -->\n";
const END: &str = "<!-- end generated: published -->\n";

/// Returns the generated part of the page.
fn generated() -> String {
    let sections: String = TRIED.iter().map(Tried::section).collect();
    let mut untried = String::from(
        "## Not tried\n\n| publication | it says | it cannot be tried, because |\n|---|---|---|\n",
    );
    for u in untried::FIGURES {
        untried += &format!("| [{}]({}) | {} | {} |\n", u.by, u.link, u.claim, u.because);
    }
    format!("## Tried\n\n{sections}{untried}")
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
    let measure = |band, ours, unit| Measure::new(unit, "", "", band, ours);
    let verdict = |band, ours, unit| measure(band, ours, unit).verdict();
    // 84 % means 83.5 to 84.5. A range agrees if it overlaps.
    assert_eq!(verdict((83.5, 84.5), (84.5, 84.5), Unit::Saved), Verdict::Agrees);
    assert_eq!(verdict((83.5, 84.5), (70.0, 90.0), Unit::Saved), Verdict::Agrees);
    assert_eq!(verdict((83.5, 84.5), (70.0, 80.0), Unit::Saved), Verdict::Direction);
    assert_eq!(verdict((83.5, 84.5), (-1.0, 80.0), Unit::Saved), Verdict::Differs);
    assert_eq!(verdict((-90.0, -84.0), (-300.0, -300.0), Unit::Saved), Verdict::Direction);
    // No saving has no direction; neither has a count or a share.
    assert_eq!(verdict((83.5, 84.5), (0.0, 0.0), Unit::Saved), Verdict::Differs);
    assert_eq!(verdict((2.0, 2.0), (3.0, 3.0), Unit::Count), Verdict::Differs);
    assert_eq!(verdict((13.2, 68.5), (87.0, 87.0), Unit::Share), Verdict::Differs);
    assert_eq!(measure((2.0, 2.0), (82_171.0, 82_171.0), Unit::Count).format_ours(), "82,171");
    let range = (-0.25, 87.0);
    assert_eq!(measure((2.0, 2.0), range, Unit::Share).format_ours(), "−0.2 % to 87.0 %");
    assert_eq!((saved(25.0, 100.0), span(&[2.0, 1.0])), (75.0, (1.0, 2.0)));
}
