//! Text cells. The text may come from an untrusted recording, and a spreadsheet would run text that
//! looks like a formula.

/// Characters that make a cell a formula if it begins with one, including the full-width forms.
/// Source: OWASP, "CSV Injection", <https://owasp.org/www-community/attacks/CSV_Injection>;
/// CWE-1236.
const BEGINNINGS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// White-space characters that make a cell a formula if it begins with one.
const BLANK_BEGINNINGS: [char; 3] = ['\t', '\r', '\n'];

/// Makes a text safe: a spreadsheet does not run it as a formula, and a terminal does not interpret
/// control characters. As OWASP advises, a text that begins like a formula gets the prefix `'`; a
/// plain number such as `-5` does not. Leading white space and `'` are skipped in this check, so
/// that two texts never become the same cell. Control characters other than tabs and line breaks
/// are replaced, as in XML.
///
/// The CSV writer handles quotes and separators.
pub(super) fn safe(text: String) -> String {
    let text = match text.contains('\r') || text.contains(is_control) {
        true => without_control(&text),
        false => text,
    };
    match is_formula(&text) {
        true => format!("'{text}"),
        false => text,
    }
}

fn is_formula(text: &str) -> bool {
    let inner = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\'');
    let begins = inner.starts_with(BEGINNINGS) && !is_number(text);
    begins || text.trim_start_matches('\'').starts_with(BLANK_BEGINNINGS)
}

/// Accepts digits with a sign, a fraction and an exponent, and nothing else: a spreadsheet reads
/// `-inf` as a name.
fn is_number(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    text.chars().all(plain) && text.parse::<f64>().is_ok()
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

/// Replaces control characters with U+FFFD. A carriage return is kept only directly before a line
/// feed.
fn without_control(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let overwrites = c == '\r' && rest.peek() != Some(&'\n');
        out.push(if overwrites || is_control(c) { '\u{fffd}' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn safe(text: &str) -> String {
        super::safe(text.into())
    }

    #[test]
    fn what_begins_like_a_formula_is_text() {
        for formula in [
            "=1+1", "+1+1", "-1+1", "@SUM(A1)", "＝1", " =1", "\t=1", "\tx", "\nx", "-", "-inf",
            "'=1",
        ] {
            assert_eq!(safe(formula), format!("'{formula}"), "{formula:?}");
        }
        assert_eq!(safe("\r\nx"), "'\r\nx");
        for plain in ["", "a=1", "a-b", "'a'", "5", "-5", "+0.25", "-1e-7", "n/a", "a\tb\r\nc"] {
            assert_eq!(safe(plain), plain);
        }
    }

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(safe("a\u{1b}[2Jb\u{7}\0\u{9b}"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(safe("a\rb"), "a\u{fffd}b");
        // Control characters do not hide a formula.
        assert_eq!(safe("\0=1"), "\u{fffd}=1");
    }

    fn hostile() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            prop::sample::select(vec![
                "=", "+", "-", "@", "'", "\"", ",", " ", "\t", "\r", "\n", "5"
            ])
            .prop_map(String::from),
            any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn no_cell_is_a_formula_and_none_is_another(text in hostile()) {
            let cell = safe(&text);
            let first = cell.chars().next();
            prop_assert!(is_number(&cell) || first.is_none_or(|c| !BEGINNINGS.contains(&c)));
            prop_assert!(first.is_none_or(|c| !BLANK_BEGINNINGS.contains(&c)));
            prop_assert!(!cell.contains(is_control));
            // Decode by the rule in docs/results.md.
            let back = match cell.strip_prefix('\'') {
                Some(inner) if is_formula(inner) => inner,
                _ => &cell,
            };
            prop_assert_eq!(back, without_control(&text));
        }

        #[test]
        fn numbers_stay_numbers(n in any::<i64>(), x in -1e12..1e12f64) {
            prop_assert_eq!(safe(&n.to_string()), n.to_string());
            prop_assert_eq!(safe(&x.to_string()), x.to_string());
        }
    }
}
