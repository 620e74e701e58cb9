//! Reader of the story files: turns as data, one block per `@` line.
//!
//! `@user THINK`, `@say`, `@TOOL ARGUMENTS`, `@fact ID KIND needs=A,B [by=ID]`; the text of a block
//! follows its line. ` #label` at the end of a line names the message for facts. A tool with `!`
//! fails. In a body, `====` separates old from new text and `----` arguments from output; an output
//! that starts with `!kind` is generated.

use ctxbench_core::fact::FactKind;

pub enum StoryBlock {
    User { think_ms: u64, label: Option<String>, text: String },
    Say { label: Option<String>, text: String },
    Call(StoryCall),
    Fact(FactNote),
}

pub struct StoryCall {
    pub tool: String,
    pub failed: bool,
    pub args: String,
    pub label: Option<String>,
    pub body: String,
}

pub struct FactNote {
    pub id: String,
    pub kind: FactKind,
    pub needs: Vec<String>,
    pub superseded_by: Option<String>,
    pub tokens: Vec<String>,
}

pub fn parse(text: &str) -> Vec<StoryBlock> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(header) = line.strip_prefix('@') else {
            assert!(line.is_empty(), "text belongs to a block: {line}");
            continue;
        };
        let mut body = Vec::new();
        while let Some(next) = lines.next_if(|next| !next.starts_with('@')) {
            body.push(next);
        }
        blocks.push(block(header, body.join("\n").trim_end()));
    }
    blocks
}

fn block(header: &str, body: &str) -> StoryBlock {
    let (header, label) = match header.rsplit_once(" #") {
        Some((rest, label)) if !label.contains(' ') => (rest, Some(label.to_owned())),
        _ => (header, None),
    };
    let (word, rest) = header.split_once(' ').unwrap_or((header, ""));
    let text = body.to_owned();
    match word {
        "user" => StoryBlock::User { think_ms: duration_ms(rest), label, text },
        "say" => StoryBlock::Say { label, text },
        "fact" => StoryBlock::Fact(fact(rest, body)),
        _ => StoryBlock::Call(StoryCall {
            tool: word.trim_end_matches('!').to_owned(),
            failed: word.ends_with('!'),
            args: rest.to_owned(),
            label,
            body: text,
        }),
    }
}

fn fact(header: &str, body: &str) -> FactNote {
    let mut words = header.split_whitespace();
    let mut next = || words.next().expect("a fact has an id, a kind and needs").to_owned();
    let (id, kind, needs) = (next(), next(), next());
    let needs = needs.strip_prefix("needs=").expect("needs come third");
    FactNote {
        id,
        kind: *FactKind::ALL.iter().find(|k| k.name() == kind).expect("a fact has a known kind"),
        needs: needs.split(',').map(str::to_owned).collect(),
        superseded_by: words.next().and_then(|word| word.strip_prefix("by=")).map(str::to_owned),
        tokens: body.lines().map(str::to_owned).collect(),
    }
}

/// `40s`, `3m` or nothing.
fn duration_ms(text: &str) -> u64 {
    let number = text.trim_end_matches(['s', 'm']);
    let value: u64 = if number.is_empty() { 0 } else { number.parse().expect("a think time") };
    value * if text.ends_with('m') { 60_000 } else { 1_000 }
}
