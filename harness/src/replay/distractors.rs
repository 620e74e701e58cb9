//! What was never said: literals made from the session's own, which must never be found. A find
//! would be a match by chance.

use ctxbench_core::fact::Fact;
use ctxbench_core::session::Session;

use super::texts;

/// Most made-up distractors of a session, an even choice of its facts.
const MOST: usize = 32;

/// Shortest literal, in characters, of which a distractor is made: shorter ones may stand anywhere.
const SHORTEST: usize = 5;

/// A distractor beside every fact (at most [`MOST`]): its longest literal with every letter and
/// digit exchanged for another.
pub(super) fn made_up(facts: &[Fact]) -> Vec<Fact> {
    let long = |f: &Fact| {
        f.tokens
            .iter()
            .max_by_key(|t| t.chars().count())
            .filter(|t| t.chars().count() >= SHORTEST)
            .cloned()
    };
    let real: Vec<(&Fact, String)> =
        facts.iter().filter(|f| !f.distractor).filter_map(|f| Some((f, long(f)?))).collect();
    let chosen = real.len().min(MOST);
    (0..chosen)
        .map(|i| {
            let (f, token) = &real[i * real.len() / chosen];
            let id = format!("not-{}", f.id);
            Fact { distractor: true, ..Fact::new(id, f.kind, exchanged(token), "") }
        })
        .filter(|d| d.tokens[0].bytes().any(|b| b.is_ascii_alphanumeric()))
        .collect()
}

/// Those that a session does not say after all.
pub(super) fn unsaid(made_up: &[Fact], session: &Session) -> Vec<Fact> {
    let mut out = made_up.to_vec();
    texts::each(session, |_, text| out.retain(|d| !text.contains(&d.tokens[0])));
    out
}

/// Another text of the same form. Digits move by 3, so that none of them is what `lossy` summaries
/// write for it.
fn exchanged(token: &str) -> String {
    let turn = |c: char, first: u8, of: u8, by: u8| char::from(first + (c as u8 - first + by) % of);
    token
        .chars()
        .map(|c| match c {
            'a'..='z' => turn(c, b'a', 26, 7),
            'A'..='Z' => turn(c, b'A', 26, 7),
            '0'..='9' => turn(c, b'0', 10, 3),
            _ => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::session::{Entry, UserEntry};

    fn session(tokens: &[&str], said: &str) -> Session {
        let fact =
            |t: &&str| serde_json::json!({"id": t, "kind": "value", "tokens": [t], "arises": "u"});
        let user = UserEntry { id: "u".into(), text: Some(said.into()), ..Default::default() };
        let facts = tokens.iter().map(|t| serde_json::from_value(fact(t)).unwrap()).collect();
        Session { entries: vec![Entry::User(user)], facts, ..Default::default() }
    }

    #[test]
    fn a_distractor_has_the_form_of_its_fact_and_other_signs() {
        let session = session(&["src/Az9.ts", "8443"], "");
        let made: Vec<String> =
            made_up(&session.facts).into_iter().flat_map(|f| f.tokens).collect();
        assert_eq!(made, ["zyj/Hg2.az"], "too short ones make none");
    }

    #[test]
    fn what_the_session_says_after_all_is_none() {
        let left = |said: &str| {
            let session = session(&["15420"], said);
            unsaid(&made_up(&session.facts), &session).len()
        };
        assert_eq!((left("48753 was measured"), left("15420 was measured")), (0, 1));
    }

    #[test]
    fn of_many_facts_an_even_choice_has_one() {
        let names: Vec<String> = (0..100).map(|i| format!("name_{i}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let made = made_up(&session(&all, "").facts);
        assert_eq!(made.len(), MOST);
        assert_eq!((made[0].id.as_str(), made[31].id.as_str()), ("not-name_0", "not-name_96"));
    }
}
