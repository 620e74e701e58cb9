//! Recordings as text, each with what is expected of it. `== HEADING` begins one, `<< NAME` each of its
//! files, and `>>` each result expected. Lines with `# ` after that are comments.

/// A reading: its heading, its files with their text, and the lines of each session.
#[derive(Default)]
pub struct Reading<'a> {
    pub heading: &'a str,
    pub files: Vec<(&'a str, Vec<&'a str>)>,
    pub sessions: Vec<Vec<&'a str>>,
}

/// Reads the readings of a text.
pub fn readings(text: &str) -> Vec<Reading<'_>> {
    let mut all: Vec<Reading<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("== ") {
            all.push(Reading { heading, ..Reading::default() });
            continue;
        }
        let Some(case) = all.last_mut() else { continue };
        match line.strip_prefix("<< ") {
            Some(name) if case.sessions.is_empty() => case.files.push((name, Vec::new())),
            _ if line == ">>" => case.sessions.push(Vec::new()),
            _ => match (case.sessions.last_mut(), case.files.last_mut()) {
                (Some(_), _) if line.starts_with("# ") || line.is_empty() => {}
                (Some(session), _) => session.push(line),
                (None, Some((_, text))) => text.push(line),
                (None, None) => {}
            },
        }
    }
    all
}

/// Returns the recordings of `tests/data/samples.txt`: number of sessions, format, and path.
pub fn samples() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines =
        include_str!("../../data/samples.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (sessions, rest) = line.split_once(' ').unwrap();
        let (format, path) = rest.split_once(' ').unwrap();
        (sessions, format, path)
    })
}
