//! Names of tools across products and scenarios, folded to their letters: `read_file`, `ReadFile`
//! and `readFile` are one tool.

/// The letters of a name in lower case.
pub fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a tool changes files.
pub fn is_edit(name: &str) -> bool {
    matches!(
        folded(name).as_str(),
        "edit" | "editfile" | "write" | "writefile" | "multiedit" | "applypatch" | "strreplace"
    )
}

/// Whether a tool shows the contents of a file.
pub fn is_read(name: &str) -> bool {
    matches!(folded(name).as_str(), "read" | "readfile" | "view" | "viewfile" | "openfile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter() {
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
