//! Goals that rows are held to.

use serde::{Deserialize, Serialize};

/// A figure that somebody wants a strategy to reach on some sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// A few words for a column.
    pub name: String,
    /// Column of `summary.csv`.
    pub metric: String,
    pub is: Comparison,
    /// In the unit of the column.
    pub bound: f64,
    pub about: About,
    /// The goal in the words of its source.
    pub says: String,
    /// Where it says so.
    pub link: String,
}

/// What a figure must be to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    #[serde(rename = "<")]
    Below,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">=")]
    AtLeast,
    #[serde(rename = ">")]
    Above,
}

/// The sessions on which a goal is judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The one of this id.
    Scenario(String),
    /// Those with this tag.
    Tag(String),
    /// All of them.
    Every,
}

impl Comparison {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Below => "<",
            Comparison::AtMost => "<=",
            Comparison::AtLeast => ">=",
            Comparison::Above => ">",
        }
    }

    /// Whether a figure is so.
    pub fn holds(self, figure: f64, bound: f64) -> bool {
        match self {
            Comparison::Below => figure < bound,
            Comparison::AtMost => figure <= bound,
            Comparison::AtLeast => figure >= bound,
            Comparison::Above => figure > bound,
        }
    }
}
