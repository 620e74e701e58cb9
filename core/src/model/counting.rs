//! Token counts of model families, estimated from o200k counts.

use serde::Deserialize;

use super::names::version;
use super::{ImageRule, Provider};
use crate::tokens::Size;

/// A counting model: estimates the provider's token count of content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counting {
    /// Tokens per o200k token of text, including hidden text that programs add.
    pub per_token: f64,
    /// Tokens per o200k token of text without hidden additions.
    pub per_visible_token: f64,
    /// Tokens per content block beyond its text: role, delimiters, ids.
    pub per_block: u64,
    /// Tokens per document, and per image of unknown size.
    pub per_image: u64,
    /// Rule for images of a known size; `None` = the same tokens for each.
    pub image: Option<ImageRule>,
    /// Whether an opaque payload, such as the signature of Claude's thinking, repeats the readable
    /// text and costs nothing extra.
    pub payload_repeats: bool,
    /// Median error of a prompt's size, per cent; `None` if not measured.
    pub error_pct: Option<f64>,
    /// Bounds of the error: minimum and maximum ratio of the provider's count to this one. 1 and 1 if
    /// exact or not measured.
    pub edges: (f64, f64),
}

/// The counting model in a file of models: coefficients in place of those of a family, or of the model's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnCounting {
    pub(super) family: Option<Family>,
    per_token: Option<f64>,
    per_visible_token: Option<f64>,
    per_block: Option<u64>,
    per_image: Option<u64>,
}

impl OwnCounting {
    /// Returns the counting model of a model with this name; what it leaves out is that of the model.
    pub(super) fn over(&self, of_model: Counting, name: &str) -> Counting {
        let base = match self.family {
            None => of_model,
            Some(Family::Claude) => Counting::CLAUDE,
            Some(Family::Claude47) => Counting::CLAUDE_4_7,
            Some(Family::Openai) => Counting::for_model(Provider::Openai, name),
            Some(Family::O200k) => Counting::O200K,
        };
        let OwnCounting { per_token, per_visible_token, per_block, per_image, .. } = *self;
        if per_token.or(per_visible_token).is_none() && per_block.or(per_image).is_none() {
            return base;
        }
        Counting {
            per_token: per_token.unwrap_or(base.per_token),
            per_visible_token: per_visible_token.or(per_token).unwrap_or(base.per_visible_token),
            per_block: per_block.unwrap_or(base.per_block),
            per_image: per_image.unwrap_or(base.per_image),
            image: base.image.filter(|_| per_image.is_none()),
            // The error was measured with other coefficients.
            error_pct: None,
            edges: (1.0, 1.0),
            ..base
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Family {
    /// The counting model of Claude up to 4.6.
    Claude,
    /// The counting model of Claude since Opus 4.7.
    #[serde(rename = "claude-4-7")]
    Claude47,
    /// o200k, exactly.
    Openai,
    /// o200k as a substitute for an unknown vocabulary.
    O200k,
}

impl Counting {
    /// o200k with four tokens per block, which OpenAI's formats add around a message. An image has the
    /// tokens that Anthropic documents for about 1.2 megapixels.
    pub const O200K: Counting = Counting {
        per_token: 1.0,
        per_visible_token: 1.0,
        per_block: 4,
        per_image: 1_600,
        image: None,
        payload_repeats: false,
        error_pct: None,
        edges: (1.0, 1.0),
    };

    /// Claude up to 4.6: fitted to the counters of recorded sessions (docs/method.md, "Tokens").
    pub const CLAUDE: Counting = Counting {
        per_token: 1.17,
        per_visible_token: 1.10,
        per_block: 34,
        image: Some(ImageRule::CLAUDE),
        payload_repeats: true,
        error_pct: Some(2.3),
        // At the ends of segments, estimates were 13 % too small to 1 % too large.
        edges: (1.0 / 1.01, 1.0 / 0.87),
        ..Counting::O200K
    };

    /// Claude since Opus 4.7, which has another vocabulary: fitted to the counters of two recorded
    /// sessions (docs/method.md, "Tokens").
    pub const CLAUDE_4_7: Counting = Counting {
        per_token: 1.61,
        per_visible_token: 1.61,
        per_block: 38,
        image: Some(ImageRule::CLAUDE_4_7),
        error_pct: Some(3.3),
        // Estimates of 151 prompts were 7.6 % too small to 4.1 % too large.
        edges: (1.0 / 1.041, 1.0 / 0.924),
        ..Counting::CLAUDE
    };

    /// Returns the counting model of a model. OpenAI's models use o200k itself. For Gemini, DeepSeek,
    /// xAI and others, without recorded counters, o200k is a substitute.
    pub fn for_model(provider: Provider, name: &str) -> Counting {
        /// The version of Opus that introduced the vocabulary.
        const SINCE: u64 = 4_07;
        let image = ImageRule::for_model(provider, name);
        match provider {
            Provider::Anthropic if version(name).is_none_or(|v| v >= SINCE) => Counting::CLAUDE_4_7,
            Provider::Anthropic => Counting::CLAUDE,
            Provider::Openai => Counting { error_pct: Some(0.0), image, ..Counting::O200K },
            _ => Counting { image, ..Counting::O200K },
        }
    }

    /// Returns the counting model for text without hidden additions, which cause most of the error.
    /// Coefficients fitted to other sessions are off by up to 5 % without them.
    pub fn for_visible_text(self) -> Counting {
        let edges = if self.edges == (1.0, 1.0) { self.edges } else { (0.95, 1.05) };
        Counting { per_token: self.per_visible_token, edges, ..self }
    }

    /// Returns the counting model of a provider that counts all content `factor` times as high.
    pub fn times(self, factor: f64) -> Counting {
        Counting {
            per_token: self.per_token * factor,
            per_visible_token: self.per_visible_token * factor,
            per_block: (self.per_block as f64 * factor).round() as u64,
            ..self
        }
    }

    /// Scales tokens per block and image, which would otherwise outweigh the text of scaled scenarios.
    pub fn scaled(self, scale: f64) -> Counting {
        let smaller = |n: u64| (n as f64 * scale).round() as u64;
        let (per_block, per_image) = (smaller(self.per_block), smaller(self.per_image));
        Counting { per_block, per_image, image: self.image.map(|rule| rule.scaled(scale)), ..self }
    }

    /// Returns the tokens of text outside blocks: tool definitions.
    pub fn text(&self, o200k: u64) -> u64 {
        // Half up. `round` is a call where the processor may lack it.
        (self.per_token * o200k as f64 + 0.5) as u64
    }

    /// Returns the tokens of a block of a size.
    pub fn block(&self, size: Size) -> u64 {
        let opaque = if self.payload_repeats && size.text > 0 { 0 } else { size.opaque };
        let image = size.pixels.zip(self.image).map(|(pixels, rule)| rule.tokens(pixels));
        let images = image.unwrap_or(size.images * self.per_image);
        self.text(size.text) + opaque + images + self.per_block
    }

    /// Returns the o200k tokens of text in a block of `tokens` tokens.
    pub fn fitting(&self, tokens: u64) -> u64 {
        (tokens.saturating_sub(self.per_block) as f64 / self.per_token) as u64
    }

    /// Describes the counting model with its error.
    pub fn describe(&self) -> String {
        let error = match self.error_pct {
            Some(0.0) => "exact for text".to_string(),
            Some(e) => {
                let [most, least] = [self.edges.0, self.edges.1].map(|f| 100.0 * (1.0 / f - 1.0));
                format!("median error of a prompt {e} %, of its end {least:+.0} to {most:+.0} %")
            }
            None => "error not measured".to_string(),
        };
        let images = match self.image {
            None => format!("{} per image", self.per_image),
            Some(_) => "images by their size".to_string(),
        };
        format!("{}, {images}; {error}", self.name())
    }

    /// Returns a short formula for headers of results: `1.17 · o200k + 34 per block`.
    pub fn name(&self) -> String {
        let Counting { per_token, per_block, .. } = self;
        match *per_token {
            1.0 => format!("o200k + {per_block} per block"),
            f => format!("{f} · o200k + {per_block} per block"),
        }
    }
}

impl Default for Counting {
    fn default() -> Self {
        Counting::O200K
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_counts_text_and_overhead() {
        let size = Size { text: 1_000, opaque: 50, images: 1, pixels: None };
        assert_eq!(Counting::O200K.block(size), 1_000 + 50 + 1_600 + 4);
        assert_eq!(Counting::CLAUDE.block(size), 1_170 + 1_600 + 34);
        assert_eq!(Counting::CLAUDE.text(100), 117);
    }

    #[test]
    fn describe_has_the_measured_error() {
        assert!(Counting::CLAUDE.describe().ends_with("2.3 %, of its end -13 to +1 %"));
        assert_eq!(Counting::O200K.for_visible_text(), Counting::O200K);
    }

    #[test]
    fn text_is_rounded_half_up() {
        for counting in [Counting::O200K, Counting::CLAUDE, Counting::CLAUDE_4_7] {
            for n in 0..300_000 {
                let exact = counting.per_token * n as f64;
                assert_eq!(counting.text(n), exact.round() as u64, "{n} × {}", counting.per_token);
            }
        }
    }

    #[test]
    fn fitting_text_counts_as_requested() {
        for counting in [Counting::O200K, Counting::CLAUDE] {
            for tokens in [34, 35, 100, 1_669, 27_699] {
                let text = counting.fitting(tokens);
                let counted = counting.block(Size { text, ..Size::default() });
                assert!(counted.abs_diff(tokens) <= 1, "{tokens}: {counted}");
            }
            assert_eq!(counting.fitting(0), 0);
        }
    }
}
