//! Cutting a text for a message or a table.

/// Returns the first `most` characters of a text, the last of them `…` if it is longer.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_string(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_are_cut_at_characters() {
        let cases =
            [("", 3, ""), ("äöü", 3, "äöü"), ("äöüß", 3, "äö…"), ("ab", 1, "…"), ("a", 0, "…")];
        for (text, most, expected) in cases {
            assert_eq!(super::cut(text, most), expected);
        }
    }
}
