//! Kinds of text that agents read and write.

use std::fmt::Write;

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

const WORDS: &str = "the session token expires before request is sent because clock of server and \
    client differ we should check login page again after middleware reads cookie \
    that was written by older release customers returning answer without redirect \
    retry quietly configuration deployment";
const NAMES: &str = "session token user cart order stock price retry clock cookie header limit batch \
    queue";
const CJK: &str = "登录 页面 返回 错误 因为 会话 已经 过期 我们 需要 检查 服务器 时间 設定 \
    ファイル を 確認 してから もう一度 試します 問題 は まだ 残って いる";

fn pick<'a>(random: &mut SplitMix64, words: &'a str) -> &'a str {
    let count = words.split(' ').count();
    words.split(' ').nth(random.below(count as u64) as usize).unwrap_or_default()
}

impl Material {
    pub const ALL: [Material; 5] =
        [Material::Prose, Material::Code, Material::Json, Material::Base64, Material::Cjk];

    /// Generates a text of this kind with at least `bytes` bytes, and little more.
    pub fn text(self, bytes: usize, seed: u64) -> String {
        let mut random = SplitMix64::new(seed ^ ((self as u64) << 56));
        let mut out = String::with_capacity(bytes + 200);
        while out.len() < bytes {
            match self {
                Material::Prose => prose(&mut out, &mut random),
                Material::Code => code(&mut out, &mut random),
                Material::Json => json(&mut out, &mut random),
                Material::Base64 => base64(&mut out, &mut random),
                Material::Cjk => cjk(&mut out, &mut random),
            }
        }
        out
    }
}

fn prose(out: &mut String, random: &mut SplitMix64) {
    for i in 0..6 + random.below(12) {
        let word = pick(random, WORDS);
        if i == 0 {
            out.push_str(&word[..1].to_uppercase());
            out.push_str(&word[1..]);
        } else {
            out.push(' ');
            out.push_str(word);
        }
    }
    out.push_str(if random.below(5) == 0 { ".\n\n" } else { ". " });
}

fn code(out: &mut String, random: &mut SplitMix64) {
    let (a, b, c) = (pick(random, NAMES), pick(random, NAMES), pick(random, NAMES));
    let n = random.below(100_000);
    let _ = write!(
        out,
        "export function {a}_{b}_{n}({c}: number, now = Date.now()): boolean {{\n    // {c} is in \
         seconds\n    const limit = {c} * {n};\n    \
         if (limit < now) {{\n        throw new {b}Error(`{a} ${{limit}} is over`);\n    }}\n    \
         return {a}.has({c}) && limit > {n};\n}}\n\n",
    );
}

fn json(out: &mut String, random: &mut SplitMix64) {
    let (kind, state, n) = (pick(random, NAMES), pick(random, WORDS), random.bits());
    let _ = writeln!(
        out,
        r#"{{"id":"{n:016x}","kind":"{kind}","state":"{state}","amount":{},"at":"2026-03-{:02}T{:02}:{:02}:00Z","tags":["{}","{}"],"parent":null}}"#,
        n % 1_000_000,
        n % 28 + 1,
        n % 24,
        n % 60,
        pick(random, NAMES),
        pick(random, NAMES),
    );
}

fn base64(out: &mut String, random: &mut SplitMix64) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = random.bits();
    out.extend((0..10).map(|i| ALPHABET[(bits >> (6 * i)) as usize & 63] as char));
}

fn cjk(out: &mut String, random: &mut SplitMix64) {
    for _ in 0..4 + random.below(8) {
        out.push_str(pick(random, CJK));
    }
    out.push_str(if random.below(3) == 0 { "。\n" } else { "、" });
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
