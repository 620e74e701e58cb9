//! Marks of strategies in charts with one point each: a shape, and a colour by name, so that a page
//! can have two sets of colours.

use std::collections::BTreeMap;

use serde::Serialize;

use super::palette::{HUES, Looks, REFERENCE, Styles};
use crate::record::Results;

/// Names of the colours, in the order of the palette.
const NAMES: [&str; HUES.len()] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"];

/// The mark of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    /// Index of the shape. It may exceed the number of shapes in the script, which wraps around.
    pub(crate) shape: usize,
    /// Colour name: `h0` to `h9`, `reference` or `control`.
    pub(crate) hue: &'static str,
}

/// Marks of all strategies by label, in the colours of the plots.
pub(crate) fn marks(results: &Results, looks: &Looks) -> BTreeMap<String, Mark> {
    let named = |color| match HUES.iter().position(|h| *h == color) {
        Some(i) => NAMES[i],
        None if color == REFERENCE => "reference",
        None => "control",
    };
    let styles = Styles::from_results(results, looks);
    let mark = |(shape, (label, style)): (usize, (String, super::palette::Style))| {
        (label, Mark { shape, hue: named(style.color) })
    };
    styles.0.into_iter().enumerate().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn every_strategy_has_a_mark_and_products_have_a_hue_of_their_own() {
        let results = testing::results();
        let all = marks(&results, &Looks::default());
        assert_eq!(all.len(), testing::LABELS.len());
        assert_eq!((all["reference"].hue, all["none"].hue), ("reference", "control"));
        let products: Vec<&str> =
            all.values().map(|m| m.hue).filter(|hue| hue.starts_with('h')).collect();
        let distinct: std::collections::BTreeSet<&&str> = products.iter().collect();
        assert_eq!((products.len(), distinct.len()), (9, 9));
        let shapes: std::collections::BTreeSet<usize> = all.values().map(|m| m.shape).collect();
        assert_eq!(shapes.len(), all.len());
    }
}
