//! What of a chat is sent to the model, and what of it is an action instead.

/// What of a user's words goes to the model, if anything.
pub(super) fn by_user(text: &str, answered: bool) -> Option<&str> {
    let text = text.trim();
    let command = text.starts_with(['/', '!']);
    match text {
        "<blank>" => answered.then_some(""),
        _ if !command => Some(text),
        // `/ask why` asks "why".
        _ if answered => Some(text.split_once(char::is_whitespace).map_or(text, |(_, t)| t.trim())),
        _ => None,
    }
}

/// Whether a user's words are a command after which the model knows of nothing that was said:
/// `/clear`, or `/reset`, which takes the files out of the chat, too. Aider knows a command by its
/// beginning, as far as no other begins so.
pub(super) fn clears(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    [("/cl", "/clear"), ("/res", "/reset")]
        .iter()
        .any(|(least, whole)| word.starts_with(least) && whole.starts_with(word))
}

/// What is said in front of the words that a failed edit sends back to the model.
const FAILED_EDIT: &str = "The LLM did not conform to the edit format.";

/// What is told to the user alone.
const NOTICES: &[&str] = &[
    "Tokens: ",
    "Cost: ",
    "Applied edit to ",
    "Did not apply edit to ",
    "Commit ",
    "You can use /undo ",
    "Attempt to fix ",
    "^C again to exit",
];

/// Whether a line is a question to the user with the answer: `Run shell command? (Y)es/(N)o [Yes]: y`,
/// in older versions `Run shell command? y`.
fn is_answered(line: &str) -> bool {
    const ANSWERS: &[&str] = &["y", "n", "a", "s", "d", "yes", "no"];
    let answered = |(_, answer): (&str, &str)| ANSWERS.contains(&answer.trim());
    line.contains("(Y)es/(N)o") || line.rsplit_once("? ").is_some_and(answered)
}

/// What the program asked the model by itself after a reply, by what it told the user: why an edit
/// failed, what a linter or a test found, which files it added.
pub(super) fn by_program(told: &str) -> String {
    let mut lines: Vec<&str> = told.lines().collect();
    if let Some(at) = lines.iter().rposition(|l| *l == FAILED_EDIT) {
        lines.drain(..=at);
        // Where a person can read about it.
        let address = lines.first().is_some_and(|l| l.contains("https://"));
        lines.drain(..usize::from(address));
    }
    lines.retain(|line| !NOTICES.iter().any(|n| line.starts_with(n)) && !is_answered(line));
    let words = lines.join("\n");
    match words.trim() {
        "" => "(what Aider asked is not recorded)".to_string(),
        words => words.to_string(),
    }
}
