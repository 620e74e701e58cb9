//! Bills of recordings as text. Each file of `tests/data/bills` has those of a program, with sums that can be
//! worked out by hand.
//!
//! The heading is `NUMBER, USD: SENTENCE`, with the number of sessions and their sum. A file `NAME = PATH` is
//! a copy of that below `tests/data`. Expected are members of the first row of `list sessions`,
//! `@ NAME: VALUE`, and parts of the messages, a line each.

use crate::billing_variants::assert_bill;
use crate::common::data;
use crate::common::readings::readings;

#[test]
fn recordings_cost_what_was_worked_out_by_hand() {
    let mut files: Vec<_> =
        std::fs::read_dir(data("bills")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for bill in readings(&text) {
            println!("{}: {}", file.display(), bill.heading);
            let (of, _) = bill.heading.split_once(": ").unwrap();
            let (sessions, usd) = of.split_once(", ").unwrap();
            let usd = usd.split(" + ").map(|part| part.parse::<f64>().unwrap()).sum();
            let files = bill.files.iter().map(|(name, lines)| match name.split_once(" = ") {
                Some((name, path)) => (name, std::fs::read_to_string(data(path)).unwrap()),
                None => (*name, lines.join("\n")),
            });
            let files: Vec<(&str, String)> = files.collect();
            let (rows, told) = assert_bill(&files, sessions.parse().unwrap(), usd);
            for line in bill.sessions.iter().flatten() {
                match line.strip_prefix("@ ").and_then(|member| member.split_once(": ")) {
                    Some(("cost_notes", part)) => {
                        assert!(rows[0]["cost_notes"].to_string().contains(part), "{}", rows[0]);
                    }
                    Some((name, value)) => {
                        assert_eq!(rows[0][name].to_string(), value, "{name}: {}", rows[0]);
                    }
                    None => assert!(told.contains(line), "{line}: {told}"),
                }
            }
        }
    }
}
