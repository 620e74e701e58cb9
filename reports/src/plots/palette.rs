//! A colour for each strategy. It is equal in all plots and, if the strategy has a preferred hue,
//! in all runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Results;
use ctxbench_core::strategy::Standing;
use plotters::style::RGBColor;
use serde::Serialize;

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

/// Preferred hues of strategies by bare name, as indices in the palette. Results do not contain
/// them.
pub type Hues = BTreeMap<&'static str, u8>;

/// The mark of a strategy in charts with one point each. The page has its own colours by these
/// names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    /// Index of the shape. It may exceed the number of shapes in the script, which wraps around.
    pub(crate) shape: usize,
    /// Colour name: `h0` to `h9`, `reference` or `control`.
    pub(crate) hue: String,
    #[serde(skip)]
    pub(super) color: RGBColor,
}

/// Assigns marks to all strategies, by label. Names without settings choose a hue before names with
/// settings, and strategies with a preferred hue before the others; the rest is first come, first
/// served.
pub(crate) fn marks(results: &Results, hues: &Hues) -> BTreeMap<String, Mark> {
    let strategies: BTreeMap<&str, (&str, Standing)> = results
        .runs
        .iter()
        .map(|r| (&*r.strategy.label, (&*r.strategy.name, r.strategy.standing)))
        .collect();
    let products: BTreeSet<(bool, usize, &str)> = strategies
        .iter()
        .filter(|(_, (_, standing))| *standing == Standing::Contender)
        .map(|(label, (name, _))| {
            let hue = hues.get(name).map_or(HUES.len(), |hue| usize::from(*hue));
            (label.contains(':'), hue, *label)
        })
        .collect();
    let mut used = [0_usize; HUES.len()];
    let mut slots = BTreeMap::new();
    for (_, hue, label) in products {
        let wish = if hue < HUES.len() { hue } else { hash(label) % HUES.len() };
        let least = used.iter().min().copied().unwrap_or(0);
        let slot = (0..HUES.len()).map(|i| (wish + i) % HUES.len()).find(|s| used[*s] == least);
        let slot = slot.unwrap_or(wish);
        used[slot] += 1;
        slots.insert(label, slot);
    }
    let mark = |(shape, (label, (_, standing))): (usize, (&str, (&str, Standing)))| {
        let (hue, color) = match (slots.get(label), standing) {
            (Some(slot), _) => (format!("h{slot}"), HUES[*slot]),
            (None, Standing::Hypothetical) => ("reference".into(), RGBColor(60, 60, 60)),
            (None, _) => ("control".into(), RGBColor(150, 150, 150)),
        };
        (label.to_string(), Mark { shape, hue, color })
    };
    strategies.into_iter().enumerate().map(mark).collect()
}

fn hash(text: &str) -> usize {
    text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)) as usize
}

/// Mixes a colour with white; `share` is the part of the colour.
pub(super) fn pale(c: RGBColor, share: f64) -> RGBColor {
    let mix = |x: u8| (f64::from(x) * share + 255.0 * (1.0 - share)).round() as u8;
    RGBColor(mix(c.0), mix(c.1), mix(c.2))
}
