//! Tool names across products, compared by their letters: `read_file`, `ReadFile` and `readFile` are
//! equal.

/// Returns the letters of a name in lower case.
pub fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns whether a tool edits files.
pub fn is_edit(name: &str) -> bool {
    matches!(
        folded(name).as_str(),
        "edit" | "editfile" | "write" | "writefile" | "multiedit" | "applypatch" | "strreplace"
    )
}

/// Returns whether a tool reads a file.
pub fn is_read(name: &str) -> bool {
    matches!(folded(name).as_str(), "read" | "readfile" | "view" | "viewfile" | "openfile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_names_ignore_spelling() {
        assert!(
            is_edit("edit_file")
                && is_edit("Write")
                && is_edit("apply_patch")
                && is_edit("MultiEdit")
        );
        assert!(!is_edit("read_file") && !is_edit("bash"));
        assert!(is_read("Read") && is_read("view_file") && !is_read("grep"));
    }
}
