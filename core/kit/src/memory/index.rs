//! Truncation of the automatic memory's index.

use std::fmt;

/// Maximum size of an index in the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexLimit {
    pub lines: usize,
    /// Maximum bytes; `None` = unlimited.
    pub bytes: Option<usize>,
}

impl fmt::Display for IndexLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines", self.lines)?;
        self.bytes.map_or(Ok(()), |n| write!(f, " and {n} bytes"))
    }
}

/// Size of the text beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Number of lines, including a last line without a newline.
    pub lines: usize,
    pub bytes: usize,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.lines == 1 { "" } else { "s" };
        write!(f, "{} line{s} ({} bytes)", self.lines, self.bytes)
    }
}

impl CutOff {
    /// Measures the text beyond the limit; `None` if it is empty.
    pub fn measure(rest: &str) -> Option<CutOff> {
        (!rest.is_empty()).then(|| CutOff { lines: rest.lines().count(), bytes: rest.len() })
    }
}

/// Splits `text` after the last whole line within both limits. Splits a first line that is too
/// long between characters.
pub fn cut_index(text: &str, limit: IndexLimit) -> (&str, &str) {
    let max_bytes = limit.bytes.unwrap_or(usize::MAX);
    let mut end = 0;
    for line in text.split_inclusive('\n').take(limit.lines) {
        if end + line.len() > max_bytes {
            break;
        }
        end += line.len();
    }
    if end == 0 && limit.lines > 0 {
        end = text.floor_char_boundary(max_bytes);
    }
    text.split_at(end)
}
