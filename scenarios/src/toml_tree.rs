//! Conversion of parsed TOML to JSON values, with line numbers for errors.

use ctxbench_util::toml_file::{self, Lines};
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::LineFault;

/// Parses a document. A syntax error names its line.
pub(crate) fn parse<'a>(text: &'a str, lines: &Lines) -> Result<DeTable<'a>, LineFault> {
    DeTable::parse(text).map(Spanned::into_inner).map_err(|e| {
        let line = e.span().map_or(1, |s| lines.line_at(s.start));
        let what = toml_file::describe(&e, text);
        LineFault::new(
            line,
            format!("not TOML: {what}"),
            "a scenario in TOML",
            "correct the syntax",
        )
    })
}

/// Converts a value to JSON. Dates become text. An error names the line of the value.
pub(crate) fn json(value: &Spanned<DeValue<'_>>, lines: &Lines) -> Result<Value, LineFault> {
    let fault = |text: &str| number(text, lines.line_at(value.span().start));
    Ok(match value.get_ref() {
        DeValue::String(s) => Value::String(s.to_string()),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(d) => Value::String(d.to_string()),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
            .map(Value::from)
            .map_err(|_| fault(i.as_str()))?,
        DeValue::Float(f) => {
            let n = f.as_str().parse::<f64>().ok().and_then(Number::from_f64);
            Value::Number(n.ok_or_else(|| fault(f.as_str()))?)
        }
        DeValue::Array(a) => {
            Value::Array(a.iter().map(|v| json(v, lines)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(t) => Value::Object(object(t, lines)?),
    })
}

/// Converts a table to a JSON object.
pub(crate) fn object(table: &DeTable<'_>, lines: &Lines) -> Result<Map<String, Value>, LineFault> {
    table.iter().map(|(k, v)| Ok((k.get_ref().to_string(), json(v, lines)?))).collect()
}

fn number(text: &str, line: usize) -> LineFault {
    if text.parse().is_ok_and(|n: f64| n.is_nan() || text.contains("inf")) {
        let what = format!("{text} is not a number that can be measured");
        return LineFault::new(line, what, "a finite number", "write one, or leave the key out");
    }
    LineFault::new(
        line,
        format!("number {text} is out of range"),
        "a number of 64 bits",
        "use a smaller one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_json() {
        let text = "a = 0x10\nb = [1.5, true, \"x\"]\nc = { d = 1979-05-27 }\n";
        let lines = Lines::new(text);
        let tree = parse(text, &lines).unwrap();
        assert_eq!(
            Value::Object(object(&tree, &lines).unwrap()),
            serde_json::json!({"a": 16, "b": [1.5, true, "x"], "c": {"d": "1979-05-27"}})
        );
        let broken = "a = 1\nb = = 2\n";
        assert_eq!(parse(broken, &Lines::new(broken)).unwrap_err().line, 2);
        let endless = "a = 1\n\nb = inf\n";
        let lines = Lines::new(endless);
        assert_eq!(object(&parse(endless, &lines).unwrap(), &lines).unwrap_err().line, 3);
    }
}
