//! The point where two sessions diverge.

use super::Store;
use super::error::StoreError;
use super::ids::Ulid;
use super::load::LoadedMessage;

/// Two logs: their common start and the rest of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// Common messages, with the ids of the first session.
    pub shared: Vec<LoadedMessage>,
    pub first: Vec<LoadedMessage>,
    pub second: Vec<LoadedMessage>,
}

impl Store {
    /// Compares the logs of two sessions message by message. Pruning and times are ignored.
    pub fn compare(&self, a: Ulid, b: Ulid) -> Result<Divergence, StoreError> {
        let (mut shared, mut second) = (self.log(a)?, self.log(b)?);
        let same = shared.iter().zip(&second).take_while(|(a, b)| has_same_content(a, b)).count();
        let first = shared.split_off(same);
        second.drain(..same);
        Ok(Divergence { shared, first, second })
    }
}

fn has_same_content(a: &LoadedMessage, b: &LoadedMessage) -> bool {
    let parts = |m: &LoadedMessage| m.parts.len();
    (a.role, a.is_boundary, parts(a)) == (b.role, b.is_boundary, parts(b))
        && a.parts.iter().zip(&b.parts).all(|(a, b)| (a.kind, &a.data) == (b.kind, &b.data))
}
