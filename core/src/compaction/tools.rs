//! Tools across products. Names are compared by their letters: `read_file`, `ReadFile` and `readFile`
//! are equal.

/// Returns the letters of a name in lower case.
pub fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}

pub fn is_edit(name: &str) -> bool {
    matches!(
        folded(name).as_str(),
        "edit" | "editfile" | "write" | "writefile" | "multiedit" | "applypatch" | "strreplace"
    )
}

pub fn is_read(name: &str) -> bool {
    matches!(folded(name).as_str(), "read" | "readfile" | "view" | "viewfile" | "openfile")
}

/// Returns the path that a call reads or edits, if it is a file tool.
pub fn file_path(tool: &str, arguments: &str) -> Option<String> {
    let of_files = is_read(tool) || is_edit(tool);
    of_files.then(|| text_argument(arguments, &["file_path", "filePath", "path"])).flatten()
}

/// Returns a line of a result without indentation and the number that file tools put before it.
pub fn without_line_number(line: &str) -> &str {
    let line = line.trim_start();
    let unnumbered = line
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start_matches(['→', '\t', '|', ':', '-']);
    if unnumbered.len() < line.len() { unnumbered.trim_start() } else { line }
}

/// Returns the text of the first of `names` among the arguments of a call.
pub fn text_argument(arguments: &str, names: &[&str]) -> Option<String> {
    let v: serde_json::Value = serde_json::from_str(arguments).ok()?;
    names.iter().find_map(|k| v.get(k)?.as_str().map(str::to_string))
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
