//! What each command's help ends with: lines to copy, each parsed by a test.

use clap::Command;

/// Command, then its lines with what they do.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "run",
        &[
            ("ctxbench", "the default scenarios under all strategies, into ctxbench-out/"),
            ("ctxbench run ~/.claude/projects --sample 10", "ten of your own sessions"),
            (
                "ctxbench run s.jsonl --strategy reference --strategy codex:auto_compact_limit=90k",
                "one session, one setting",
            ),
        ],
    ),
    (
        "advise",
        &[("ctxbench advise ~/.claude/projects", "the line to write into your settings, if any")],
    ),
    (
        "list",
        &[
            ("ctxbench list strategies --matrix", "what each does, side by side"),
            ("ctxbench list sessions ~/.codex/sessions", "what a folder of recordings holds"),
        ],
    ),
    ("show", &[("ctxbench show codex", "what it does when, its settings, defaults and sources")]),
    (
        "import",
        &[
            (
                "ctxbench import r.jsonl --cassette c.jsonl -o s.jsonl",
                "with the summaries it was given",
            ),
            ("ctxbench import r.jsonl -o session.jsonl", "the canonical form, to look at or edit"),
            ("ctxbench import r.jsonl --redact -o given.jsonl", "without keys and home folders"),
        ],
    ),
    (
        "compact",
        &[(
            "ctxbench compact s.jsonl --strategy claude-code --at 60%",
            "the context before and after a compaction at that point",
        )],
    ),
    ("memory", &[("ctxbench memory .", "memory files that each product would load from here")]),
    ("conform", &[("ctxbench conform tests/data/conformance", "all recorded cases")]),
    (
        "validate",
        &[("ctxbench validate r.jsonl", "predicted against recorded tokens and cache counters")],
    ),
    (
        "record",
        &[
            ("ctxbench record --out s.jsonl -- claude", "all that goes to the provider and back"),
            ("ctxbench record --out s.jsonl --agent codex -- codex", "by its own way to be told"),
            (
                "ctxbench record --out s.jsonl --env MY_URL={url}/v1 --upstream https://h/v1 -- mine",
                "a program and a provider of your own",
            ),
        ],
    ),
    (
        "serve",
        &[
            ("ctxbench serve", "a model that says what arrived, for any client"),
            (
                "ctxbench serve --script login-bug --fault '3:429;retry-after=1'",
                "a scenario's replies, the third request refused",
            ),
        ],
    ),
    (
        "drive",
        &[
            (
                "ctxbench drive login-bug --agent codex --window 30k",
                "the installed agent itself, beside our implementation",
            ),
            (
                "ctxbench drive login-bug --agent codex --record cases",
                "what it did as a case, tried on our implementation",
            ),
            (
                "ctxbench drive s.jsonl --agent ./mine.toml --program mine=/opt/mine/bin/run",
                "an agent of your own",
            ),
        ],
    ),
    (
        "explain",
        &[
            ("ctxbench explain out port-5433", "where that fact was lost"),
            ("ctxbench explain out --strategy codex --lost", "all that a strategy lost"),
        ],
    ),
    (
        "compare",
        &[
            ("ctxbench compare before after --markdown", "for a pull request"),
            (
                "ctxbench compare a b --map codex=codex:auto_compact_limit=90k",
                "a strategy against another setting of it",
            ),
        ],
    ),
    (
        "gate",
        &[
            ("ctxbench gate out --baseline baseline.json --store", "once"),
            ("ctxbench gate out --baseline baseline.json --junit gate.xml", "from then on"),
        ],
    ),
    (
        "merge",
        &[("ctxbench merge part-1 part-2 --out out", "the files that one run would have written")],
    ),
    ("report", &[("ctxbench report out --format markdown", "the table for a document")]),
    (
        "completions",
        &[("ctxbench completions bash > ~/.local/share/bash-completion/completions/ctxbench", "")],
    ),
    (
        "man",
        &[("ctxbench man -o ~/.local/share/man/man1", "a page per command, then man ctxbench-run")],
    ),
];

/// The command line with examples behind the help of every command.
pub(super) fn added(root: Command) -> Command {
    EXAMPLES.iter().fold(root, |root, (name, lines)| {
        root.mut_subcommand(name, |command| {
            let before = command.get_after_help().map(|h| format!("{h}\n\n")).unwrap_or_default();
            command.after_help(format!("{before}{}", told(lines)))
        })
    })
}

fn told(lines: &[(&str, &str)]) -> String {
    let line = |(line, what): &(&str, &str)| match *what {
        "" => format!("  {line}\n"),
        what => format!("  {line}\n      {what}\n"),
    };
    format!("Examples:\n{}", lines.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_examples_that_parse() {
        let root = super::super::Cli::command();
        let names: Vec<&str> = root.get_subcommands().map(Command::get_name).collect();
        for name in &names {
            assert!(EXAMPLES.iter().any(|(n, _)| n == name), "`{name}` has no example");
        }
        for (name, lines) in EXAMPLES {
            assert!(names.contains(name), "there is no command `{name}`");
            for (line, _) in *lines {
                let shell = line.split(" > ").next().unwrap_or_default().replace('\'', "");
                let parsed = root.clone().try_get_matches_from(shell.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
