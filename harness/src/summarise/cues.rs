//! General features of a sentence: marks of rules, decisions, errors and tasks; paths, names and
//! numbers.

use std::ops::BitOr;
use std::sync::OnceLock;

use rapidhash::RapidHashMap as HashMap;

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cues(u16);

impl Cues {
    /// Marks of a rule: must, never, only, please keep.
    pub const RULE: Cues = Cues(1);
    /// Marks of a decision: because, found, decided.
    pub const DECISION: Cues = Cues(1 << 1);
    /// Marks of an error: error, failed, refused.
    pub const ERROR: Cues = Cues(1 << 2);
    /// Marks of a task: todo, next, remaining.
    pub const TODO: Cues = Cues(1 << 3);
    /// Marks of finished work: added, changed, passed.
    pub const DONE: Cues = Cues(1 << 4);
    pub const QUESTION: Cues = Cues(1 << 5);
    /// A path or file name.
    pub const PATH: Cues = Cues(1 << 6);
    /// An identifier or something quoted.
    pub const NAME: Cues = Cues(1 << 7);
    /// A number of two digits or more.
    pub const NUMBER: Cues = Cues(1 << 8);
    /// Marks of a total: total, count, result.
    pub const TOTAL: Cues = Cues(1 << 9);
    /// Marks of one side of a comparison: expected, received, got.
    pub const COMPARED: Cues = Cues(1 << 10);
    /// Marks that cancel an error: none, zero.
    pub const NO_CUES: Cues = Cues(1 << 11);
    /// Announces an action without a statement: let me, I will read.
    pub const FILLER: Cues = Cues(1 << 12);

    /// Returns whether it has all cues of `o`.
    pub fn has(self, o: Cues) -> bool {
        self.0 & o.0 == o.0
    }
}

impl BitOr for Cues {
    type Output = Cues;
    fn bitor(self, o: Cues) -> Cues {
        Cues(self.0 | o.0)
    }
}

/// Cues in English, with the most common ones in German, French and Spanish.
const WORDS: &[(Cues, &str)] = &[
    (
        Cues::RULE,
        "must mustn never don dont keep only always prefer avoid forbidden please without unless \
         cannot untouched exactly leave ensure \
         require required requires should shall promised allowed until unchanged \
         muss müssen nie niemals nicht immer nur bitte darf dürfen jamais toujours doit seulement \
         siempre nunca debe",
    ),
    (
        Cues::DECISION,
        "because so therefore instead decided decision decide found find cause causes caused \
         reason why fix turns means will root \
         chose choose drop keep agreed correct propose suspicion explains conclusion \
         weil deshalb entschieden ursache grund stattdessen parce décidé porque decidido",
    ),
    (
        Cues::ERROR,
        "error errors exception failed fails fail failure failures fatal panic panicked denied \
         refused timeout crash crashed broken \
         wrong bug traceback unhandled rejected invalid missing conflict fehler fehlgeschlagen \
         erreur échec fallo",
    ),
    (
        Cues::TODO,
        "todo todos fixme next remaining remains later pending afterwards follow open unfinished \
         noch später offen reste falta",
    ),
    (
        Cues::DONE,
        "fixed added changed edited created removed renamed moved updated wrote written passed \
         passes pass implemented done finished committed \
         deployed merged applied replaced works green verified erledigt geändert ajouté terminé \
         hecho",
    ),
    (Cues::TOTAL, "total totals passed tests summary coverage sum count rows files exit status"),
    (Cues::COMPARED, "expected received got actual assert assertion"),
    (Cues::NO_CUES, "no none zero without 0"),
    (Cues::FILLER, "let look read check understood search start"),
];

/// Phrases in scripts without spaces.
const PHRASES: &[(Cues, &[&str])] = &[
    (
        Cues::RULE,
        &[
            "必须",
            "不要",
            "禁止",
            "不得",
            "只能",
            "务必",
            "不能",
            "请",
            "必ず",
            "しない",
            "ください",
            "絶対",
            "だけ",
        ],
    ),
    (
        Cues::DECISION,
        &["因为", "所以", "决定", "原因", "发现", "因此", "改为", "ので", "決め", "ため", "見つ"],
    ),
    (Cues::ERROR, &["错误", "失败", "异常", "报错", "エラー", "失敗", "例外"]),
    (Cues::TODO, &["接下来", "待办", "下一步", "剩下", "稍后", "次に", "残り", "あとで"]),
    (Cues::DONE, &["完成", "已修", "已添", "通过", "修正した", "追加した", "完了"]),
    (Cues::QUESTION, &["？", "吗", "ですか", "ますか"]),
];

fn table() -> &'static HashMap<&'static [u8], Cues> {
    static TABLE: OnceLock<HashMap<&'static [u8], Cues>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut t: HashMap<&[u8], Cues> = HashMap::default();
        for (cue, words) in WORDS {
            for w in words.split_whitespace() {
                let all = t.entry(w.as_bytes()).or_default();
                *all = *all | *cue;
            }
        }
        t
    })
}

/// Length of the longest entry, bytes.
const LONGEST: usize = 16;

/// Returns the features of a sentence, in one pass.
pub(super) fn parse(text: &str) -> Cues {
    let table = table();
    let mut cues = Cues::default();
    for token in text.split_ascii_whitespace() {
        cues = cues | shape(token);
        for word in token.as_bytes().split(|b| b.is_ascii() && !b.is_ascii_alphanumeric()) {
            if word.is_empty() || word.len() > LONGEST {
                continue;
            }
            let mut low = [0u8; LONGEST];
            for (l, b) in low.iter_mut().zip(word) {
                *l = b.to_ascii_lowercase();
            }
            if let Some(c) = table.get(&low[..word.len()]) {
                cues = cues | *c;
            }
        }
    }
    if text.trim_end().ends_with('?') {
        cues = cues | Cues::QUESTION;
    }
    if text.contains(['✗', '✕', '✖', '❌']) {
        cues = cues | Cues::ERROR;
    }
    if !text.is_ascii() {
        for (c, phrases) in PHRASES {
            if phrases.iter().any(|p| text.contains(p)) {
                cues = cues | *c;
            }
        }
    }
    cues
}

/// Returns the features of a token's shape: path, name, number.
fn shape(token: &str) -> Cues {
    let t = token.as_bytes();
    let (mut cues, mut digits, mut last) = (Cues::default(), 0, b' ');
    for (i, &b) in t.iter().enumerate() {
        let next = t.get(i + 1).copied().unwrap_or(b' ');
        match b {
            b'/' if last.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() && t.len() > 5 => {
                cues = cues | Cues::PATH
            }
            b'.' if (last.is_ascii_alphanumeric() || last == b'_') && is_extension(&t[i + 1..]) => {
                cues = cues | Cues::PATH
            }
            b'_' if last.is_ascii_alphanumeric() && next.is_ascii_alphanumeric() => {
                cues = cues | Cues::NAME
            }
            b'`' => cues = cues | Cues::NAME,
            b'A'..=b'Z' if last.is_ascii_lowercase() => cues = cues | Cues::NAME,
            b'-' if last.is_ascii_uppercase() && next.is_ascii_digit() => cues = cues | Cues::NAME,
            b'0'..=b'9' => digits += 1,
            _ => {}
        }
        last = b;
    }
    if digits >= 2 { cues | Cues::NUMBER } else { cues }
}

/// Returns whether two to four letters follow up to the end of the token, except for closing marks.
fn is_extension(rest: &[u8]) -> bool {
    let letters = rest.iter().take_while(|b| b.is_ascii_lowercase()).count();
    (2..=5).contains(&letters)
        && rest[letters..].iter().all(|b| b.is_ascii_punctuation() || b.is_ascii_digit())
}
