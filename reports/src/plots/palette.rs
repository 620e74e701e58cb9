//! A colour for each strategy. It is equal in all plots and, if the strategy has a preferred hue,
//! in all runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::{Results, RunRecord};
use ctxbench_core::strategy::Standing;
use plotters::style::RGBColor;

/// Ten hues that are distinguishable with colour blindness and in print (after Okabe & Ito 2008 and
/// P. Tol's muted scheme).
pub(super) const HUES: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(51, 34, 136),
    RGBColor(136, 34, 85),
    RGBColor(153, 153, 51),
    RGBColor(166, 118, 29),
];

pub(super) const REFERENCE: RGBColor = RGBColor(60, 60, 60);
const CONTROL: RGBColor = RGBColor(150, 150, 150);

/// Line style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dash {
    Solid,
    Dashed,
    Dotted,
}

/// Colour and line style of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) color: RGBColor,
    pub(super) dash: Dash,
}

/// Preferred styles of strategies, by bare name. Results do not contain them.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// Preferred hue, as an index in the palette.
    pub hues: BTreeMap<&'static str, u8>,
    /// Strategies drawn dashed in grey.
    pub dashed: BTreeSet<&'static str>,
}

/// Styles of all strategies by label.
pub(super) struct Styles(pub(super) BTreeMap<String, Style>);

impl Styles {
    /// Assigns styles by label. Names without settings choose before names with settings, and
    /// strategies with a preferred hue before the others; the rest is first come, first served.
    pub(super) fn from_results(results: &Results, looks: &Looks) -> Styles {
        let labels: BTreeSet<(bool, usize, &str)> = results
            .runs
            .iter()
            .filter(|r| r.strategy.standing == Standing::Contender)
            .map(|r| {
                let label = r.strategy.label.as_str();
                let hue = looks.hues.get(&*r.strategy.name).copied();
                (label.contains(':'), hue.map_or(HUES.len(), usize::from), label)
            })
            .collect();
        let mut used = [0_usize; HUES.len()];
        let mut out = BTreeMap::new();
        for (_, hue, label) in labels {
            let wish = if hue < HUES.len() { hue } else { hash(label) % HUES.len() };
            let least = used.iter().min().copied().unwrap_or(0);
            let slot = (0..HUES.len())
                .map(|i| (wish + i) % HUES.len())
                .find(|s| used[*s] == least)
                .unwrap_or(wish);
            let dash = [Dash::Solid, Dash::Dashed, Dash::Dotted][used[slot].min(2)];
            used[slot] += 1;
            out.insert(label.to_string(), Style { color: HUES[slot], dash });
        }
        for r in results.runs.iter().filter(|r| r.strategy.standing != Standing::Contender) {
            let color =
                if r.strategy.standing == Standing::Hypothetical { REFERENCE } else { CONTROL };
            let dashed = looks.dashed.contains(&*r.strategy.name);
            let dash = if dashed { Dash::Dashed } else { Dash::Solid };
            out.insert(r.strategy.label.clone(), Style { color, dash });
        }
        Styles(out)
    }

    /// Style of the strategy of a run.
    pub(super) fn of_run(&self, run: &RunRecord) -> Style {
        self.of_label(&run.strategy.label)
    }

    /// Style of a label.
    pub(super) fn of_label(&self, label: &str) -> Style {
        self.0.get(label).copied().unwrap_or(Style { color: CONTROL, dash: Dash::Solid })
    }
}

fn hash(text: &str) -> usize {
    text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)) as usize
}

/// Mixes a colour with white; `share` is the part of the colour.
pub(super) fn pale(c: RGBColor, share: f64) -> RGBColor {
    let mix = |x: u8| (f64::from(x) * share + 255.0 * (1.0 - share)).round() as u8;
    RGBColor(mix(c.0), mix(c.1), mix(c.2))
}
