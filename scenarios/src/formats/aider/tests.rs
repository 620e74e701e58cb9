use ctxbench_session::Entry;

use super::super::testing::{assert_contains, counted, describe, import, recorded};
use super::*;
use crate::Loaded;

fn all(source: &Source<'_>) -> Vec<Loaded> {
    import("aider", source)
}

#[test]
fn a_recorded_chat_becomes_a_session() {
    let all = all(&Source::at(&recorded("aider/read-only-files.aider.chat.history.md")));
    let s = &all[0].session;
    assert_eq!(s.header.id, "read-only-files.aider.chat.history-2024-08-09-16-16-42");
    assert_eq!(s.header.title, "add the read only files to the tokens report");
    assert_eq!(s.header.model.as_deref(), Some("claude-3-5-sonnet-20240620"));
    let counts: Vec<_> = counted(s).into_iter().flatten().map(|c| (c[0], c[3])).collect();
    assert_eq!(counts, [(20_842, 1_273), (11_077, 706), (14_066, 534)]);
    let text = &describe(s)[1];
    // A comment at the start of a line is not a heading, and blanks in code are kept.
    assert_contains(text, &["\n        # files\n        for fname in self.coder.abs_fnames:\n"]);
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

> Tokens: 12k sent, 1.2k received. Cost: $0.02 message, $0.04 session.  
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
    let expected = [
        "user: one\ntwo",
        "model: Done:\n# a heading\n> a quotation\n#### a deep heading",
        "user: why",
        "model: Because.",
        "call: 0",
    ];
    assert_eq!(describe(&one.session), expected);
    // The session's costs so far: 0.01 and 0.04.
    let told = |e: &Entry| match e {
        Entry::Assistant(a) => a.usage.as_ref()?.billing.told_usd,
        Entry::RecordedCall(c) => c.usage.billing.told_usd,
        _ => None,
    };
    let cents: Vec<f64> =
        one.session.entries.iter().filter_map(told).map(|usd| (usd * 100.0).round()).collect();
    assert_eq!(cents, [1.0, 3.0]);
    assert_eq!(one.session.header.id, "aider.chat.history-2026-01-01-10-00-00");
    assert_eq!(counted(&one.session), [Some([800, 300, 100, 45]), None]);
    assert_eq!(one.session.header.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(describe(&two.session), ["user: <blank>\nagain"]);
    // Without blanks at the ends of lines, the beginnings of the lines decide.
    let bare = CHATS.replace("  \n", "\n");
    let loaded = FORMAT.import_all(&Source::of_bytes(bare.as_bytes(), "h.md")).unwrap();
    assert_eq!(describe(&loaded[0].session)[1], "model: Done:\n# a heading");
}

fn entries_of(text: &str) -> Vec<String> {
    describe(&all(&Source::of_bytes(text.as_bytes(), "h.md"))[0].session)
}

#[test]
fn commands_that_forget_are_clears() {
    let chat = "
# aider chat started at 2026-01-01 10:00:00

#### /clear  
> All chat history cleared.  
#### one  

Yes.

> Tokens: 1,200 sent, 45 received.  
#### /clear  

#### /ask why  

Because.

#### /res  
> All files dropped and chat history cleared.  
#### /clone  

#### two  
";
    // A `/clear` before the first message has no effect.
    let told = ["user: one", "model: Yes.", "clear", "user: why", "model: Because.", "clear"];
    assert_eq!(entries_of(chat), [&told[..], &["user: two"]].concat());
    let nothing = chat.split("#### one").next().unwrap();
    let source = Source::of_bytes(nothing.as_bytes(), "h.md");
    let none = FORMAT.import_all(&source).unwrap_err().to_string();
    assert!(none.starts_with("h.md:1: nothing in it"), "{none}");
}

const REPAIRS: &str = "
# aider chat started at 2026-01-01 10:00:00

#### one  

First.

> Tokens: 1,200 sent, 45 received.  
> The LLM did not conform to the edit format.  
> https://aider.chat/docs/troubleshooting/edit-errors.html  
> # 1 SEARCH/REPLACE block failed to match!  
>   
> <<<<<<< SEARCH  
>     x = 1  
> >>>>>>> REPLACE  

Second.

> Applied edit to a.py  
> Commit abc1234 feat: x  
> You can use /undo to revert and discard commit abc1234.  
>   
> ## Running: flake8 a.py  
> a.py:1: unused  
>   
> pytest -q  
> Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: y  
> Attempt to fix lint errors? (Y)es/(N)o [Yes]: y  

Third.

> Tokens: 1,300 sent, 45 received.  
> Add b.py to the chat? y  

Fourth.
";

#[test]
fn what_the_program_asks_by_itself_is_a_message() {
    let failed =
        "# 1 SEARCH/REPLACE block failed to match!\n\n<<<<<<< SEARCH\n    x = 1\n>>>>>>> REPLACE";
    let told = [
        "user: one",
        "model: First.",
        &format!("user: {failed}"),
        "model: Second.",
        "user: ## Running: flake8 a.py\na.py:1: unused\n\npytest -q",
        "model: Third.",
        "user: (what Aider asked is not recorded)",
        "model: Fourth.",
    ];
    assert_eq!(entries_of(REPAIRS), told);
    // The newer form is one text, with blanks at its end only.
    let begin = REPAIRS.find("> # 1").unwrap();
    let end = REPAIRS.find("\n\nSecond").unwrap();
    let newer = [&REPAIRS[..begin], "> ", failed, "  ", &REPAIRS[end..]].concat();
    assert_eq!(entries_of(&newer), told);
    // An unanswered text was either not sent or is no longer relevant.
    let unanswered = [&REPAIRS[..end], "\n\n#### two  \n"].concat();
    assert_eq!(entries_of(&unanswered), ["user: one", "model: First.", "user: two"]);
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
    assert_eq!(describe(&all[0].session)[0], "system: Be brief.\n\nEdit files.");
    assert_contains(&all[0].warnings.join("\n"), &[".aider.llm.history"]);
    assert!(!describe(&all[1].session).iter().any(|e| e.starts_with("system")));
}
