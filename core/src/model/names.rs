//! Parts of the names of models: version, date, gateway.

pub(super) fn is_name_of(recorded: &str, model: &str) -> bool {
    recorded.match_indices(model).any(|(at, found)| {
        let (before, after) = (&recorded[..at], &recorded[at + found.len()..]);
        let ends = after.is_empty()
            || after.starts_with(['@', ':', '['])
            || after.strip_prefix('-').is_some_and(begins_with_date);
        ends && (before.is_empty() || before.ends_with(['.', '/']))
    })
}

/// Returns a recorded name in lower case, without a gateway's prefix, version and date.
pub(super) fn base_name(recorded: &str) -> String {
    let name = recorded.to_ascii_lowercase();
    let name = bare(&name).split(['@', ':', '[']).next().unwrap_or_default();
    let name = name.strip_suffix("-v1").unwrap_or(name);
    let date = |(at, _): &(usize, &str)| begins_with_date(&name[at + 1..]);
    let end = name.match_indices('-').find(date).map_or(name.len(), |(at, _)| at);
    name[..end].trim_end_matches("-latest").to_string()
}

/// Returns a name without one thing that programs add to it: a provider before a colon
/// (`openai:gpt-5-mini`), or at the end an effort, a stage or a day
/// (`gpt-5-mini-high`, `gemini-2.5-pro-preview`, `grok-4-0709`).
pub(super) fn with_less(name: &str) -> Option<&str> {
    const ADDED: [&str; 8] =
        ["minimal", "low", "medium", "high", "xhigh", "none", "thinking", "preview"];
    if let Some((provider, model)) = name.split_once(':')
        && provider.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
    {
        return Some(model);
    }
    let (rest, word) = name.rsplit_once('-')?;
    // `claude` alone is no model.
    rest.find(|c: char| c == '-' || c.is_ascii_digit())?;
    let is_day = word.len() == 2 && word.bytes().all(|b| b.is_ascii_digit());
    let is_date = word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit()) && word[..2] <= *"12";
    let is_preview = is_day && rest.contains("-preview") || rest.ends_with("-preview");
    (ADDED.contains(&word) || is_date || is_preview).then_some(rest)
}

/// Returns whether a text begins with a date such as `20250929` or `2025-09-29`.
fn begins_with_date(text: &str) -> bool {
    let shaped = |shape: &str| {
        text.len() >= shape.len()
            && text.bytes().zip(shape.bytes()).all(|(c, s)| match s {
                b'0' => c.is_ascii_digit(),
                s => c == s,
            })
    };
    shaped("00000000") || shaped("0000-00-00")
}

/// Removes a gateway's prefix from a name: `openrouter/openai/`, `us.anthropic.`.
pub(super) fn bare(name: &str) -> &str {
    let mut bare = name.rsplit('/').next().unwrap_or(name);
    while let Some((head, tail)) = bare.split_once('.')
        && head.chars().all(char::is_alphabetic)
    {
        bare = tail;
    }
    // `chatgpt-4o-latest` is a GPT model.
    bare.strip_prefix("chat").filter(|b| b.starts_with("gpt")).unwrap_or(bare)
}

/// Returns the version in a name, such as 405 for `claude-sonnet-4-5`.
pub(super) fn version(name: &str) -> Option<u64> {
    Name::parse(bare(name)).version
}

/// Parts of a name, and its version: `claude-sonnet-4-5` becomes `claude`, `sonnet` and 405.
pub(super) struct Name {
    pub(super) words: Vec<String>,
    pub(super) version: Option<u64>,
}

impl Name {
    pub(super) fn parse(name: &str) -> Name {
        let name = name.split(['@', ':', '[']).next().unwrap_or_default().to_ascii_lowercase();
        let mut words: Vec<String> = Vec::new();
        let mut numbers: Vec<u64> = Vec::new();
        for part in name.split(['-', '.', '_']) {
            // `4o` and `v3` contain a number and a word.
            let digits: String = part.chars().filter(char::is_ascii_digit).collect();
            let word: String = part.chars().filter(|c| !c.is_ascii_digit()).collect();
            if !word.is_empty() {
                words.push(word);
            }
            // Longer ones are dates.
            if (1..=2).contains(&digits.len()) && numbers.len() < 2 {
                numbers.extend(digits.parse::<u64>());
            } else if digits.len() > 2 {
                // A date is not a version.
                break;
            }
        }
        let version = numbers.first().map(|major| major * 100 + numbers.get(1).unwrap_or(&0));
        Name { words, version }
    }
}
