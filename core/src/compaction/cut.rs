//! Cutting text: keep the head, or remove the middle.

/// A text without its middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiddleCut<'a> {
    pub head: &'a str,
    pub tail: &'a str,
    pub removed_chars: usize,
}

/// Removes the middle so that at most `budget` bytes remain, half at each end, at character
/// boundaries. Returns `None` if the text fits.
pub fn middle_cut(text: &str, budget: usize) -> Option<MiddleCut<'_>> {
    if text.len() <= budget {
        return None;
    }
    let left = budget / 2;
    let right = budget - left;
    let head = &text[..text.floor_char_boundary(left)];
    let tail = &text[text.ceil_char_boundary(text.len() - right)..];
    let removed = &text[head.len()..text.len() - tail.len()];
    Some(MiddleCut { head, tail, removed_chars: removed.chars().count() })
}

/// Returns the first `max` UTF-16 units of a text, at a character boundary; `None` if it fits.
pub fn head_cut(text: &str, max: usize) -> Option<&str> {
    let mut units = 0;
    let is_beyond = |(_, c): &(usize, char)| {
        units += c.len_utf16();
        units > max
    };
    text.char_indices().find(is_beyond).map(|(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn head_cut_counts_utf16() {
        assert_eq!(head_cut("ab😀c", 3), Some("ab"));
        assert_eq!(head_cut("ab😀c", 4), Some("ab😀"));
        assert_eq!(head_cut("ab😀c", 5), None);
    }

    proptest! {
        #[test]
        fn middle_cut_accounts_for_every_byte(text in ".{0,200}", budget in 0usize..120) {
            match middle_cut(&text, budget) {
                None => prop_assert!(text.len() <= budget),
                Some(c) => {
                    prop_assert!(c.head.len() + c.tail.len() <= budget);
                    let chars = |t: &str| t.chars().count();
                    prop_assert_eq!(chars(c.head) + chars(c.tail) + c.removed_chars, chars(&text));
                    prop_assert!(text.starts_with(c.head) && text.ends_with(c.tail));
                }
            }
        }
    }
}
