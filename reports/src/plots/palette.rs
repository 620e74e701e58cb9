//! A colour for each strategy, equal in all plots. Its settings share it.

use std::collections::{BTreeMap, BTreeSet};

use crate::record::Results;
use ctxbench_core::strategy::Standing;
use plotters::style::RGBColor;

/// Hues with a contrast of three to one to white paper and to the dark page.
pub(super) const HUES: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(196, 124, 0),
    RGBColor(0, 145, 105),
    RGBColor(213, 70, 0),
    RGBColor(200, 100, 160),
    RGBColor(40, 150, 215),
    RGBColor(110, 90, 205),
    RGBColor(185, 50, 105),
    RGBColor(128, 132, 20),
    RGBColor(150, 95, 55),
    RGBColor(225, 60, 75),
    RGBColor(0, 140, 160),
];

/// Preferred hues of strategies by bare name, as indices in the palette. Results do not contain
/// them.
pub type Hues = BTreeMap<&'static str, u8>;

/// Colours of all products, by label.
pub(crate) type Colors = BTreeMap<String, RGBColor>;

/// Assigns a colour to each product. Those with a preferred hue choose first; the others take a hue
/// that the fewest have.
pub(crate) fn colors(results: &Results, hues: &Hues) -> Colors {
    let products = || results.runs.iter().filter(|r| r.strategy.standing == Standing::Contender);
    let wish = |name: &str| hues.get(name).map_or(HUES.len(), |hue| usize::from(*hue));
    let names: BTreeSet<(usize, &str)> =
        products().map(|r| &*r.strategy.name).map(|name| (wish(name), name)).collect();
    let mut used = [0_usize; HUES.len()];
    let mut colors = BTreeMap::new();
    for (wish, name) in names {
        let slots = (0..HUES.len()).map(|i| (wish + i) % HUES.len());
        let slot = slots.min_by_key(|slot| used[*slot]).unwrap_or_default();
        used[slot] += 1;
        colors.insert(name, HUES[slot]);
    }
    products().map(|r| (r.strategy.label.clone(), colors[&*r.strategy.name])).collect()
}

/// Mixes a colour with white; `share` is the part of the colour.
pub(super) fn pale(c: RGBColor, share: f64) -> RGBColor {
    let mix = |x: u8| (f64::from(x) * share + 255.0 * (1.0 - share)).round() as u8;
    RGBColor(mix(c.0), mix(c.1), mix(c.2))
}
