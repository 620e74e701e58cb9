//! Texts shortened around their first difference.

/// Characters shown before the first difference.
const BEFORE: usize = 60;
const AFTER: usize = 100;

/// Returns the parts of both texts around the first different character, each on one line.
pub fn shorten(expected: &str, got: &str) -> (String, String) {
    let same = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
    (window(expected, same), window(got, same))
}

fn window(text: &str, same: usize) -> String {
    let from = same.saturating_sub(BEFORE);
    let all = text.chars().count();
    let shown: String = text.chars().skip(from).take(BEFORE + AFTER).collect();
    let before = if from > 0 { format!("({from} more)…") } else { String::new() };
    let left = all.saturating_sub(from + BEFORE + AFTER);
    let behind = if left > 0 { format!("…({left} more)") } else { String::new() };
    format!("{before}{shown}{behind}").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_around_the_difference() {
        let (a, b) =
            (format!("{}A{}", "x".repeat(500), "y".repeat(500)), format!("{}B", "x".repeat(500)));
        let (a, b) = shorten(&a, &b);
        assert!(
            a.starts_with("(440 more)…") && a.contains("xA") && a.ends_with("…(401 more)"),
            "{a}"
        );
        assert!(b.ends_with("xB"), "{b}");
    }
}
