//! A point in a session, and the part of a session up to it.

use std::fmt;
use std::str::FromStr;

use ctxbench_core::model::Counting;
use ctxbench_core::tokens::Size;
use ctxbench_session::{Entry, Session};
use ctxbench_util::plural::pluralize;
use thiserror::Error;

/// Position at which a session ends. Turns and replies are those of the main conversation and count
/// from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// After a turn: a message of the user and all replies and results that follow it.
    Turn(u64),
    /// After a reply of the model and the results of its calls.
    Step(u64),
    /// After the first reply at which this share of the session's tokens is reached, in percent
    /// (1 to 100).
    Percent(u64),
}

/// A point after the end of the session.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{point} is not in the session, which has {} and {}",
    pluralize(*.turns, "turn"),
    pluralize(*.steps, "reply")
)]
pub struct NoSuchPoint {
    point: CutPoint,
    turns: u64,
    steps: u64,
}

impl FromStr for CutPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<CutPoint, String> {
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|n| *n > 0);
        let found = match text.split_once(':') {
            Some(("turn", n)) => number(n).map(CutPoint::Turn),
            Some(("step", n)) => number(n).map(CutPoint::Step),
            Some(_) => None,
            None => {
                let share = text.strip_suffix('%').and_then(number);
                share.filter(|n| *n <= 100).map(CutPoint::Percent)
            }
        };
        found.ok_or_else(|| {
            format!(
                "`{text}` is no point of a session; expected turn:N, step:N (N from 1) or a share \
                 such as 60%"
            )
        })
    }
}

impl fmt::Display for CutPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CutPoint::Turn(n) => write!(f, "turn:{n}"),
            CutPoint::Step(n) => write!(f, "step:{n}"),
            CutPoint::Percent(n) => write!(f, "{n}%"),
        }
    }
}

/// Returns the part of a session up to and including the turn or reply of a point.
pub fn up_to(session: &Session, point: CutPoint) -> Result<Session, NoSuchPoint> {
    let said = |e: &Entry| -> u64 {
        let standing = e.standing_text().map(Size::text);
        let sizes = e.content().into_iter().map(|p| p.size()).chain(standing);
        sizes.map(|s| Counting::O200K.block(s)).sum()
    };
    let main = |e: &&Entry| e.agent().is_none();
    let all: u64 = session.entries.iter().filter(main).map(said).sum();
    let (mut turns, mut steps, mut so_far) = (0, 0, 0);
    // Several messages that are answered together are one turn.
    let mut asking = false;
    let mut reached = false;
    for (i, e) in session.entries.iter().enumerate().filter(|(_, e)| main(e)) {
        let asks = matches!(e, Entry::User(_));
        let over = match point {
            CutPoint::Turn(_) => !matches!(e, Entry::Tool(_) | Entry::Assistant(_)),
            _ => !matches!(e, Entry::Tool(_)),
        };
        if reached && over {
            return Ok(Session { entries: session.entries[..i].to_vec(), ..session.clone() });
        }
        turns += u64::from(asks && !asking);
        steps += u64::from(matches!(e, Entry::Assistant(_)));
        asking = asks || asking && !matches!(e, Entry::Assistant(_));
        so_far += said(e);
        reached = match point {
            CutPoint::Turn(n) => turns == n && !asking,
            CutPoint::Step(n) => steps == n,
            CutPoint::Percent(n) => {
                let here = matches!(e, Entry::Assistant(_));
                reached || here && u128::from(so_far) * 100 >= u128::from(all) * u128::from(n)
            }
        };
    }
    // The last turn or the last results may end the session; 100 % is the whole session.
    let whole = matches!(point, CutPoint::Percent(_)) && steps > 0;
    match reached || whole {
        true => Ok(session.clone()),
        false => Err(NoSuchPoint { point, turns, steps }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two turns; the first has two questions, two replies and a result.
    fn session() -> Session {
        let lines = r#"{"type":"session","version":1,"id":"s","title":"s"}
{"type":"system","text":"be brief"}
{"type":"user","id":"u1","text":"one"}
{"type":"user","id":"u2","text":"two"}
{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"read","arguments":"{}"}]}
{"type":"tool","call_id":"c1","output":"three"}
{"type":"assistant","id":"a2","text":"four"}
{"type":"compact"}
{"type":"user","id":"u3","text":"five"}
{"type":"assistant","id":"a3","text":"six"}
"#;
        ctxbench_scenarios::jsonl::read(lines.as_bytes(), "s").unwrap().session
    }

    fn last(point: &str) -> Result<usize, NoSuchPoint> {
        up_to(&session(), point.parse().unwrap()).map(|s| s.entries.len())
    }

    #[test]
    fn points_by_hand() {
        assert_eq!(last("step:1"), Ok(5), "with the result of its call");
        assert_eq!((last("step:2"), last("turn:1")), (Ok(6), Ok(6)), "without the command behind");
        assert_eq!(last("turn:2"), Ok(9));
        assert_eq!(last("step:3"), Ok(9));
        // Blocks of o200k + 4: 6, 5, 5, a call of 2 + 4, 5, 5, 5, 5: 42; the first reply ends at 22.
        assert_eq!((last("50%"), last("53%")), (Ok(5), Ok(6)));
        assert_eq!(last("100%"), Ok(9));
    }

    #[test]
    fn what_is_not_there_says_what_is() {
        let e = last("turn:3").unwrap_err().to_string();
        assert_eq!(e, "turn:3 is not in the session, which has 2 turns and 3 replies");
        for wrong in ["", "turn", "turn:0", "step:x", "0%", "101%", "7", "line:3"] {
            assert!(wrong.parse::<CutPoint>().is_err(), "{wrong}");
        }
    }
}
