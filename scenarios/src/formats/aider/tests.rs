use std::path::Path;

use ctxbench_core::session::{Entry, Session};

use super::super::{Loaded, detect};
use super::*;

fn all(source: &Source<'_>) -> Vec<Loaded> {
    let format = detect(source).expect("recognised");
    assert_eq!(format.name, "aider");
    format.import_all(source).unwrap()
}

fn words(session: &Session) -> Vec<String> {
    let said = |e: &Entry| match e {
        Entry::User(u) => format!("user {}", u.text.as_deref().unwrap_or("…")),
        Entry::Assistant(a) => format!("model {}", a.text.as_deref().unwrap_or("…")),
        other => format!("{other:?}"),
    };
    session.entries.iter().map(said).collect()
}

#[test]
fn a_recorded_chat_becomes_a_session() {
    let path = "../tests/data/recordings/aider/read-only-files.aider.chat.history.md";
    let all = all(&Source::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)));
    let s = &all[0].session;
    assert_eq!(s.header.id, "read-only-files.aider.chat.history-2024-08-09-16-16-42");
    assert_eq!(s.header.title, "add the read only files to the tokens report");
    assert_eq!(s.header.model.as_deref(), Some("claude-3-5-sonnet-20240620"));
    let usage = |e: &Entry| match e {
        Entry::Assistant(a) => a.usage.map(|u| (u.input, u.output)),
        _ => None,
    };
    let counted: Vec<_> = s.entries.iter().filter_map(usage).collect();
    assert_eq!(counted, [(20_842, 1_273), (11_077, 706), (14_066, 534)]);
    let Entry::Assistant(first) = &s.entries[1] else { panic!("{:?}", s.entries[1]) };
    let text = first.text.as_deref().unwrap();
    // A comment at the start of a line is no heading, and blanks in code stay.
    assert!(
        text.contains("\n        # files\n        for fname in self.coder.abs_fnames:\n"),
        "{text}"
    );
}

const CHATS: &str = "
# aider chat started at 2026-01-01 10:00:00

> Main model: gpt-5.5 with diff edit format  

#### /add a.py  
> Added a.py to the chat  
#### one  
#### two  

Done:
# a heading
> a quotation
#### a deep heading

> Tokens: 1,200 sent, 100 cache write, 300 cache hit, 45 received. Cost: $0.01 message, $0.01 session.  

#### /ask why  

Because.

> Tokens: 12k sent, 1.2k received.  
#### /exit  

# aider chat started at 2026-01-01 11:00:00

> nothing was asked  

# aider chat started at 2026-01-02 09:00:00

#### <blank>  
#### again  
";

#[test]
fn chats_of_a_file_are_sessions_of_what_was_asked_and_answered() {
    let all = all(&Source::of_bytes(CHATS.as_bytes(), ".aider.chat.history.md"));
    let [one, two] = all.as_slice() else { panic!("{} sessions", all.len()) };
    assert_eq!(
        words(&one.session),
        [
            "user one\ntwo",
            "model Done:\n# a heading\n> a quotation\n#### a deep heading",
            "user why",
            "model Because.",
        ]
    );
    assert_eq!(one.session.header.id, "aider.chat.history-2026-01-01-10-00-00");
    let [_, Entry::Assistant(a), _, Entry::Assistant(b)] = one.session.entries.as_slice() else {
        panic!()
    };
    assert_eq!(
        a.usage.map(|u| (u.input, u.cache_read, u.cache_write, u.output)),
        Some((800, 300, 100, 45))
    );
    assert_eq!((b.usage, b.model.as_deref()), (None, Some("gpt-5.5")));
    assert_eq!(words(&two.session), ["user <blank>\nagain"]);
    // Without the blanks at the ends of lines their beginnings decide.
    let bare = CHATS.replace("  \n", "\n");
    let loaded = FORMAT.import_all(&Source::of_bytes(bare.as_bytes(), "h.md")).unwrap();
    assert_eq!(words(&loaded[0].session)[1], "model Done:\n# a heading");
}

#[test]
fn the_history_of_requests_gives_the_system_prompt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(".aider.chat.history.md");
    std::fs::write(&path, CHATS).unwrap();
    let requests = "TO LLM 2026-01-01T10:01:00\n-------\nSYSTEM Be brief.\nSYSTEM \nSYSTEM Edit files.\n-------\n\
        USER one\nSYSTEM reminder\nLLM RESPONSE 2026-01-01T10:01:09\nASSISTANT Done\nTO LLM 2026-01-02T09:00:05\n-------\nUSER again\n";
    std::fs::write(dir.path().join(".aider.llm.history"), requests).unwrap();
    let all = all(&Source::at(&path));
    assert!(
        matches!(&all[0].session.entries[0], Entry::System { text, .. } if text == "Be brief.\n\nEdit files.")
    );
    assert!(
        all[0].warnings.iter().any(|w| w.contains(".aider.llm.history")),
        "{:?}",
        all[0].warnings
    );
    assert!(!all[1].session.entries.iter().any(|e| matches!(e, Entry::System { .. })));
}
