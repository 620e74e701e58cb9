//! Distinguishes texts of a chat that are sent to the model from commands and notices.

/// Returns the part of a user's text that is sent to the model, if any.
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

/// Returns whether a user's text is a command that clears the conversation: `/clear`, or `/reset`,
/// which also removes the files from the chat. Aider accepts an unambiguous prefix of a command.
pub(super) fn clears(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    [("/cl", "/clear"), ("/res", "/reset")]
        .iter()
        .any(|(least, whole)| word.starts_with(least) && whole.starts_with(word))
}

/// Text before the message that a failed edit sends back to the model.
const FAILED_EDIT: &str = "The LLM did not conform to the edit format.";

/// Prefixes of notices that only the user sees.
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

/// Returns whether a line is a question to the user with its answer: `Run shell command? (Y)es/(N)o
/// [Yes]: y`, in older versions `Run shell command? y`.
fn is_answered(line: &str) -> bool {
    const ANSWERS: &[&str] = &["y", "n", "a", "s", "d", "yes", "no"];
    let answered = |(_, answer): (&str, &str)| ANSWERS.contains(&answer.trim());
    line.contains("(Y)es/(N)o") || line.rsplit_once("? ").is_some_and(answered)
}

/// Returns the request that the program made by itself after a reply, built from its notices: the
/// reason of a failed edit, the findings of a linter or a test, or the files it added.
pub(super) fn by_program(told: &str) -> String {
    let mut lines: Vec<&str> = told.lines().collect();
    if let Some(at) = lines.iter().rposition(|l| *l == FAILED_EDIT) {
        lines.drain(..=at);
        // Link to the documentation.
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
