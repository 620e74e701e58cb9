//! Readable forms of serde's messages about values of the wrong type.

/// Rewrites "invalid type: string \"a\", expected u64" as "it is the text \"a\"; expected a whole number
/// from 0 on". Returns other messages unchanged. `table` is the format's name for a map.
pub fn describe(what: &str, table: &str) -> String {
    let rest = ["invalid type: ", "invalid value: "].iter().find_map(|k| what.strip_prefix(k));
    match rest.and_then(|rest| rest.split_once(", expected ")) {
        Some((found, expected)) => {
            format!("it is {}; expected {}", value(found, table), kind(expected, table))
        }
        None => length(what, table).unwrap_or_else(|| what.to_string()),
    }
}

/// Describes an error in one line of JSON, with the text before and at its place.
pub fn in_json(text: &str, e: &serde_json::Error) -> String {
    const BYTES: usize = 60;
    let said = e.to_string();
    let what = said.rsplit_once(" at line ").map_or(&*said, |(what, _)| what);
    let what = describe(what, "an object");
    let from = text.floor_char_boundary(e.column().saturating_sub(BYTES));
    let to = text.floor_char_boundary(e.column() + BYTES / 2);
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{what}, at {}{}{}", cut(from > 0), &text[from..to], cut(to < text.len()))
}

/// Describes a list where a table is expected: serde reads its entries until one is missing.
fn length(what: &str, table: &str) -> Option<String> {
    let (n, expected) = what.strip_prefix("invalid length ")?.split_once(", expected ")?;
    let is_list = expected.starts_with("struct ");
    is_list.then(|| format!("it is a list of {n}; expected {table}"))
}

fn value(found: &str, table: &str) -> String {
    let named =
        [("string ", "the text "), ("integer ", ""), ("floating point ", ""), ("boolean ", "")];
    let named = named.iter().find_map(|(theirs, ours)| Some((found.strip_prefix(theirs)?, ours)));
    match (named, found) {
        (Some((value, ours)), _) => format!("{ours}{}", value.trim_matches('`')),
        (None, "map") => table.into(),
        (None, "sequence") => "a list".into(),
        (None, "unit value" | "null") => "null".into(),
        (None, other) => other.into(),
    }
}

pub(crate) fn kind<'a>(expected: &'a str, table: &'a str) -> &'a str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => table,
        other if other.starts_with("struct ") || other.starts_with("internally tagged") => table,
        other if other.starts_with("enum ") || other == "string or table" => "a word",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describe_rewrites_type_errors() {
        for (serde, readable) in [
            (
                "invalid type: string \"a\", expected u64",
                "it is the text \"a\"; expected a whole number from 0 on",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "it is -1; expected a whole number from 0 on",
            ),
            (
                "invalid type: floating point `1.5`, expected a string",
                "it is 1.5; expected a string",
            ),
            ("invalid type: map, expected a sequence", "it is a table; expected a list"),
            ("invalid type: null, expected struct Usage", "it is null; expected a table"),
            ("missing field `a`", "missing field `a`"),
            (
                "invalid length 1, expected struct Results with 6 elements",
                "it is a list of 1; expected a table",
            ),
        ] {
            assert_eq!(describe(serde, "a table"), readable);
        }
    }

    #[test]
    fn in_json_shows_the_place() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct TestForm {
            #[allow(dead_code, reason = "only its name matters")]
            window: u64,
        }
        let told = |text: &str| {
            in_json(text, &serde_json::from_str::<TestForm>(text).expect_err("an error"))
        };
        let long = "ü".repeat(100);
        assert_eq!(
            told(&format!("{{\"window\": \"{long}\"}}")),
            format!(
                "it is the text \"{long}\"; expected a whole number from 0 on, at …{}\"}}",
                "ü".repeat(30)
            )
        );
        assert_eq!(
            told("{\"windw\": 1}"),
            "unknown field `windw`, expected `window`, at {\"windw\": 1}"
        );
        assert_eq!(told("{}"), "missing field `window`, at {}");
    }
}
