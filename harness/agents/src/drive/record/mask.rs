//! Masks the agent's own text: letters and digits become `x`, while all sizes that an estimate may
//! use (bytes, UTF-16 units, escapes) stay. Stretches of the agent's text are recognised wherever
//! they are repeated, such as in a summary or in a text that was cut.

use std::collections::HashSet;

/// Length of a stretch, bytes.
const STRETCH: usize = 16;

type Stretches = HashSet<[u8; STRETCH]>;

pub(super) struct Mask {
    /// Stretches of texts that the agent sent.
    agent: Stretches,
    /// Stretches of the session, which stay readable.
    session: Stretches,
}

impl Mask {
    pub(super) fn new<'a>(
        agent: impl Iterator<Item = &'a str>,
        session: impl Iterator<Item = &'a str>,
    ) -> Mask {
        let stretches = |text: &'a str| text.as_bytes().array_windows().copied();
        Mask {
            agent: agent.flat_map(stretches).collect(),
            session: session.flat_map(stretches).collect(),
        }
    }

    /// Masks the agent's text in a text.
    pub(super) fn text(&self, text: &str) -> String {
        let (mut agent, mut session) = (vec![false; text.len()], vec![false; text.len()]);
        for (i, stretch) in text.as_bytes().array_windows().enumerate() {
            if self.session.contains(stretch) {
                session[i..i + STRETCH].fill(true);
            } else if self.agent.contains(stretch) {
                agent[i..i + STRETCH].fill(true);
            }
        }
        let is_masked =
            |at: usize, c: char| (at..at + c.len_utf8()).all(|i| agent[i] && !session[i]);
        text.char_indices().map(|(i, c)| if is_masked(i, c) { mask(c) } else { c }).collect()
    }
}

/// Returns a placeholder with the same size.
fn mask(c: char) -> char {
    match (c.is_alphanumeric(), c.len_utf8()) {
        (false, _) => c,
        (true, 1) => 'x',
        (true, 2) => 'ä',
        (true, 3) => '一',
        (true, _) => '𐐀',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_agent_is_masked_wherever_it_is_repeated() {
        let wrapped = "Secret wrapper 17: the words of the session. Größe 好 𐐀 of it all.";
        let m = Mask::new(
            ["You are the agent of a secret maker. Obey.", wrapped].into_iter(),
            ["the words of the session."].into_iter(),
        );
        for (text, want) in [
            (wrapped, "xxxxxx xxxxxxx xx: the words of the session. xxääx 一 𐐀 xx xx xxx."),
            (
                "- User: You are the agent of a sec…\n- the words of the session. Obey.",
                "- User: xxx xxx xxx xxxxx xx x xxx…\n- the words of the session. Obey.",
            ),
            ("[Result]: Secret wrapper 17: the wo…", "[Result]: xxxxxx xxxxxxx xx: xxx xx…"),
            ("go on", "go on"),
        ] {
            let got = m.text(text);
            assert_eq!(got, want);
            let sizes = |t: &str| (t.len(), t.encode_utf16().count());
            assert_eq!(sizes(&got), sizes(text));
        }
    }
}
