//! The index of the automatic memory, of which only the beginning is shown.

/// Lines of the index that are shown (docs/sources/claude-code.md §1.5, grade A).
pub const INDEX_LINES: usize = 200;
/// Bytes of the index that are shown: 25 KB (same place), taken as 25 × 1,024.
pub const INDEX_BYTES: usize = 25 * 1024;

/// What is not shown of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Lines, a last one without an end included.
    pub lines: usize,
    /// Bytes.
    pub bytes: usize,
}

/// The part that is shown: whole lines within both limits; of a first line that is too long, whole
/// characters.
pub fn cut_index(text: &str) -> (&str, Option<Lost>) {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(INDEX_LINES) {
        if end + line.len() > INDEX_BYTES {
            break;
        }
        end += line.len();
    }
    if end == 0 {
        end = text.floor_char_boundary(INDEX_BYTES);
    }
    let (shown, rest) = text.split_at(end);
    (shown, (!rest.is_empty()).then(|| Lost { lines: rest.lines().count(), bytes: rest.len() }))
}
