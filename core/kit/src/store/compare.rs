//! Where two sessions part.

use super::Store;
use super::error::StoreError;
use super::load::LoadedMessage;
use super::ulid::Ulid;

/// Two logs, up to where they are the same and from there on.
#[derive(Clone, Debug, PartialEq)]
pub struct Parting {
    /// Messages that both begin with, as the first has them; ids differ where one is a fork.
    pub shared: Vec<LoadedMessage>,
    /// What only the first goes on with.
    pub first: Vec<LoadedMessage>,
    /// What only the second goes on with.
    pub second: Vec<LoadedMessage>,
}

impl Store {
    /// Compares what was said in two sessions, message by message. Whether a result was pruned
    /// since, and when anything was said, makes no difference.
    pub fn compare(&self, a: Ulid, b: Ulid) -> Result<Parting, StoreError> {
        let (mut shared, mut second) = (self.log(a)?, self.log(b)?);
        let same = shared.iter().zip(&second).take_while(|(a, b)| says_the_same(a, b)).count();
        let first = shared.split_off(same);
        second.drain(..same);
        Ok(Parting { shared, first, second })
    }
}

fn says_the_same(a: &LoadedMessage, b: &LoadedMessage) -> bool {
    let parts = |m: &LoadedMessage| m.parts.len();
    (a.role, a.boundary, parts(a)) == (b.role, b.boundary, parts(b))
        && a.parts.iter().zip(&b.parts).all(|(a, b)| (a.kind, &a.data) == (b.kind, &b.data))
}
