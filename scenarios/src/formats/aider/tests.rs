use super::*;

#[test]
fn a_chat_in_which_nothing_was_asked_is_refused() {
    let chat = "\n# aider chat started at 2026-01-01 10:00:00\n\n#### /clear  \n> All chat history cleared.  \n";
    let e = FORMAT.import_all(&Source::of_bytes(chat.as_bytes(), "h.md")).unwrap_err().to_string();
    assert!(e.starts_with("h.md:1: nothing in it"), "{e}");
}
