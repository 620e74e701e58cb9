//! A row in pieces of JSON: each field, and of a list each entry. A row of a long session is larger
//! than the session, so that who stores rows holds one piece at a time.

use serde::Serialize;

use super::RunRecord;

/// Takes a piece: the field as `results.json` names it, the place in it from 0 where it is a list,
/// the JSON.
pub(crate) type TakePiece<'a, E> = dyn FnMut(&str, Option<usize>, &str) -> Result<(), E> + 'a;

/// What the lists hold goes entry by entry, everything else as a whole. Names every field, so that
/// none is forgotten.
macro_rules! pieces {
    ($run:expr, $take:expr, whole: [$($whole:ident),*], lists: [$($list:ident),*]) => {{
        let RunRecord { $($whole,)* $($list,)* digest: _ } = $run;
        $(
            // What is not there stands in no results either.
            let piece = json($whole);
            if piece != "null" {
                $take(stringify!($whole), None, &piece)?;
            }
        )*
        $(
            for (at, entry) in $list.iter().enumerate() {
                $take(stringify!($list), Some(at), &json(entry))?;
            }
        )*
        Ok(())
    }};
}

impl RunRecord {
    /// Calls `f` with every piece, always in the same order.
    pub(crate) fn pieces<E>(&self, take: &mut TakePiece<'_, E>) -> Result<(), E> {
        pieces!(
            self,
            take,
            whole: [
                scenario, strategy, model, summariser, seed, window, status, error, note, beside,
                summary, steering
            ],
            lists: [
                requests, compactions, background, facts, lives, triggers, integrity,
                rewinds, resume, delegation
            ]
        )
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data always serialises")
}
