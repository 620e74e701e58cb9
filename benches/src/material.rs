//! Kinds of text that agents read and write.

use ctxbench_util::rng::SplitMix64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material {
    /// English sentences.
    Prose,
    /// Source code.
    Code,
    /// JSON objects as returned by an API.
    Json,
    /// Base64 data in a single line.
    Base64,
    /// Chinese and Japanese sentences.
    Cjk,
}

/// Pieces of each kind, with bars between them, and what joins them in a text. `~` is a random number.
const PIECES: [(&str, &str); 5] = [
    (
        "the|session|token|expires|before|request|is|sent|because|clock|of|server|and|client|differ.|\
         We|should|check|login|page|again|after|middleware|reads|cookie|that|was|written|by|older|\
         release.\n\nCustomers|returning|answer|without|redirect|retry|quietly|in ~|deployments",
        " ",
    ),
    (
        "export function session_~(clock: number, now = Date.now()): boolean {|    // The limit is in \
         seconds.\n    const limit = clock * ~;|    if (limit < now) {\n        throw new \
         RetryError(`order ${limit} is over`);\n    }|    return stock.has(cart_~) && limit > ~;\n}\n",
        "\n",
    ),
    (
        r#"{"id":"~","kind":"order","state":"older","amount":~,"tags":["retry","cookie"],"parent":null}|{"id":"~","kind":"stock","at":"2026-03-12T10:15:00Z","price":~,"header":"x-limit-~","batch":[~,~]}"#,
        "\n",
    ),
    ("zs7O|b29v|QkFT|RTY0|ZGF0|YSBp|bmEg|c2lu|Z2xl|IGxp|bmUh|x9Kd|+w/q|Pz8/|Ub3e|7Hg2|~", ""),
    (
        "登录页面返回错误|因为会话已经过期|我们需要检查服务器时间|設定ファイルを確認してから|もう一度試します。\n|\
         問題はまだ残っている。\n|第~次",
        "、",
    ),
];

impl Material {
    pub const ALL: [Material; 5] =
        [Material::Prose, Material::Code, Material::Json, Material::Base64, Material::Cjk];

    /// Generates a text of this kind with at least `bytes` bytes, and little more.
    pub fn text(self, bytes: usize, seed: u64) -> String {
        let mut random = SplitMix64::new(seed ^ ((self as u64) << 56));
        let (pieces, join) = PIECES[self as usize];
        let pieces: Vec<&str> = pieces.split('|').collect();
        let mut out = String::with_capacity(bytes + 200);
        while out.len() < bytes {
            let piece = pieces[random.below(pieces.len() as u64) as usize];
            out += &piece.replace('~', &random.below(100_000).to_string());
            out += join;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_size_and_its_seed() {
        for m in Material::ALL {
            let text = m.text(4_000, 1);
            assert!((4_000..4_500).contains(&text.len()), "{m:?}: {}", text.len());
            assert_eq!(text, m.text(4_000, 1));
            assert_ne!(text, m.text(4_000, 2));
        }
    }
}
