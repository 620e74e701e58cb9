//! The index of the automatic memory, of which only the beginning is shown.

use std::fmt;

/// How much of an index is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimit {
    /// Lines.
    pub lines: usize,
    /// Bytes; `None` = as many as the lines have.
    pub bytes: Option<usize>,
}

impl fmt::Display for IndexLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines", self.lines)?;
        self.bytes.map_or(Ok(()), |n| write!(f, " and {n} bytes"))
    }
}

/// What is not shown of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Lines, a last one without an end included.
    pub lines: usize,
    /// Bytes.
    pub bytes: usize,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.lines == 1 { "" } else { "s" };
        write!(f, "{} line{s} ({} bytes)", self.lines, self.bytes)
    }
}

impl Lost {
    /// `None` = nothing is lost.
    pub fn of(rest: &str) -> Option<Lost> {
        (!rest.is_empty()).then(|| Lost { lines: rest.lines().count(), bytes: rest.len() })
    }
}

/// The part that is shown and the rest: whole lines within both limits; of a first line that is too
/// long, whole characters.
pub fn cut_index(text: &str, limit: IndexLimit) -> (&str, &str) {
    let most = limit.bytes.unwrap_or(usize::MAX);
    let mut end = 0;
    for line in text.split_inclusive('\n').take(limit.lines) {
        if end + line.len() > most {
            break;
        }
        end += line.len();
    }
    if end == 0 && limit.lines > 0 {
        end = text.floor_char_boundary(most);
    }
    text.split_at(end)
}
