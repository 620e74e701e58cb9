//! A row in pieces of JSON: one per field, and one per entry of a list field. A row of a long
//! session is larger than the session; pieces allow storing it without the whole row in memory.

use serde::Serialize;

use super::RunRecord;

/// Callback for a piece: the field name in `results.json`, the index in a list field (from 0), and
/// the JSON.
pub(crate) type TakePiece<'a, E> = dyn FnMut(&str, Option<usize>, &str) -> Result<(), E> + 'a;

/// Passes list fields entry by entry, and all other fields as a whole. The macro destructures the
/// record, so that a new field cannot be forgotten.
macro_rules! pieces {
    ($run:expr, $take:expr, whole: [$($whole:ident),*], lists: [$($list:ident),*]) => {{
        let RunRecord { $($whole,)* $($list,)* digest: _ } = $run;
        $(
            // Results leave out absent values, too.
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
    /// Calls `take` with every piece, always in the same order.
    pub(crate) fn pieces<E>(&self, take: &mut TakePiece<'_, E>) -> Result<(), E> {
        pieces!(
            self,
            take,
            whole: [
                scenario, strategy, model, summariser, seed, window, status, error, note, beside,
                summary
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
