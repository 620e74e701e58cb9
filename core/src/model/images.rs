//! Tokens of images by their size, as providers publish them.

use super::Provider;
use super::names::{bare, version};
use crate::image::Pixels;

/// A provider's rule for the tokens of an image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageRule {
    /// Every image has the same tokens.
    Flat,
    /// Each square of `side` pixels has `per_patch` tokens. A larger image is first shrunk to `longest`
    /// pixels and `most` squares.
    Patches { side: u32, longest: u32, most: u64, per_patch: f64 },
    /// `base` tokens, and `per_tile` for each square of 512 pixels. An image is first shrunk to 2,048
    /// pixels, and its shorter side to 768.
    Tiles { base: f64, per_tile: f64 },
}

impl ImageRule {
    /// Claude up to 4.6, by <https://platform.claude.com/docs/en/build-with-claude/vision>.
    pub(super) const CLAUDE: ImageRule =
        ImageRule::Patches { side: 28, longest: 1_568, most: 1_568, per_patch: 1.0 };

    /// Claude since Opus 4.7, by the same page.
    pub(super) const CLAUDE_4_7: ImageRule =
        ImageRule::Patches { side: 28, longest: 2_576, most: 4_784, per_patch: 1.0 };

    /// Returns the rule of a model that is none of Anthropic's, with its tokens of an image of unknown
    /// size. OpenAI: <https://developers.openai.com/api/docs/guides/images-vision>, and since GPT-5.4 as
    /// measured in <https://huggingface.co/datasets/JOHNISKING/image-token-cost>. Gemini:
    /// <https://ai.google.dev/gemini-api/docs/tokens> and, since Gemini 3,
    /// <https://ai.google.dev/gemini-api/docs/media-resolution>.
    pub(super) fn for_model(provider: Provider, name: &str) -> (ImageRule, u64) {
        const UNKNOWN: u64 = 1_600;
        let patches =
            |side, most, per_patch| ImageRule::Patches { side, longest: u32::MAX, most, per_patch };
        let (name, version) = (bare(name), version(name).unwrap_or_default());
        let rule = match provider {
            Provider::Openai if name.contains("nano") => patches(32, 1_536, 2.46),
            Provider::Openai if name.starts_with("o4-mini") => patches(32, 1_536, 1.72),
            Provider::Openai if name.starts_with("gpt-4o-mini") => {
                ImageRule::Tiles { base: 2_833.0, per_tile: 5_667.0 }
            }
            Provider::Openai if name.contains("mini") => patches(32, 1_536, 1.62),
            Provider::Openai if name.starts_with('o') => {
                ImageRule::Tiles { base: 75.0, per_tile: 150.0 }
            }
            Provider::Openai if version >= 6_00 => patches(32, u64::MAX, 1.2),
            Provider::Openai if version >= 5_04 => patches(32, 10_000, 1.2),
            Provider::Openai if version >= 5_00 => ImageRule::Tiles { base: 70.0, per_tile: 140.0 },
            Provider::Openai => ImageRule::Tiles { base: 85.0, per_tile: 170.0 },
            Provider::Gemini if version >= 3_00 => return (ImageRule::Flat, 1_120),
            Provider::Gemini => patches(768, u64::MAX, 258.0),
            _ => ImageRule::Flat,
        };
        (rule, UNKNOWN)
    }

    /// Returns the tokens of an image; `None` if the rule does not depend on its size.
    pub(super) fn tokens(self, image: Pixels) -> Option<u64> {
        let (width, height) = (f64::from(image.width), f64::from(image.height));
        let squares = |scale: f64, side: f64| {
            (width * scale / side).ceil().max(1.0) * (height * scale / side).ceil().max(1.0)
        };
        let tokens = match self {
            ImageRule::Flat => return None,
            ImageRule::Patches { side, longest, most, per_patch } => {
                let (side, most) = (f64::from(side), most as f64);
                let mut scale = (f64::from(longest) / width.max(height)).min(1.0);
                if squares(scale, side) > most {
                    scale = scale.min((most * side * side / (width * height)).sqrt());
                }
                squares(scale, side).min(most) * per_patch
            }
            ImageRule::Tiles { base, per_tile } => {
                let scale = (2_048.0 / width.max(height)).min(768.0 / width.min(height)).min(1.0);
                base + per_tile * squares(scale, 512.0)
            }
        };
        Some(tokens.ceil() as u64)
    }

    /// Multiplies the tokens of every image.
    pub(super) fn scaled(self, scale: f64) -> ImageRule {
        match self {
            ImageRule::Flat => self,
            ImageRule::Patches { side, longest, most, per_patch } => {
                ImageRule::Patches { side, longest, most, per_patch: per_patch * scale }
            }
            ImageRule::Tiles { base, per_tile } => {
                ImageRule::Tiles { base: base * scale, per_tile: per_tile * scale }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::priced_as;
    use crate::tokens::Size;

    fn tokens(model: &str, width: u32, height: u32) -> u64 {
        let counting = priced_as(model).unwrap().counting;
        let pixels = Some(Pixels { width, height });
        counting.block(Size { images: 1, pixels, ..Size::default() }) - counting.per_block
    }

    #[test]
    fn images_count_by_the_rule_of_their_provider() {
        // Squares of 28 pixels, by hand: 8 × 8, 36 × 36, 69 × 39 and, shrunk to 2,576 pixels, 92 × 52.
        assert_eq!(tokens("claude-opus-4-7", 200, 200), 64);
        assert_eq!(tokens("claude-sonnet-4-5", 1_000, 1_000), 1_296);
        assert_eq!(tokens("claude-opus-4-8", 1_920, 1_080), 2_691);
        assert_eq!(tokens("claude-opus-4-8", 3_840, 2_160), 4_784);
        // The provider's maximum.
        assert_eq!(tokens("claude-sonnet-4-5", 1_920, 1_080), 1_568);
        // Measured, without the 13 tokens of the message: 60 × 34 and 80 × 45 squares of 32 pixels.
        assert_eq!(tokens("gpt-5.5", 1_920, 1_080), 2_448);
        assert_eq!(tokens("gpt-6-sol", 2_560, 1_440), 4_320);
        // The examples of OpenAI's page: 1,024 by 1,024 is shrunk to 768 and has four tiles, 2,048 by
        // 4,096 has six.
        assert_eq!(tokens("gpt-4.1", 1_024, 1_024), 765);
        assert_eq!(tokens("gpt-4o", 2_048, 4_096), 1_105);
        assert_eq!(tokens("gpt-5.1", 1_024, 1_024), 630);
        assert_eq!(tokens("o3", 512, 512), 225);
        // 32 × 32 squares.
        assert_eq!(tokens("o4-mini", 1_024, 1_024), 1_762);
        assert_eq!(tokens("gpt-5-mini", 1_024, 1_024), 1_659);
        assert_eq!(tokens("gemini-2.5-pro", 1_500, 700), 516);
        assert_eq!(tokens("gemini-3-flash-preview", 1_500, 700), 1_120);
        assert_eq!(tokens("deepseek-chat", 1_500, 700), 1_600);
        // Nobody knows the size of a link or the pages of a document.
        let unknown = Size { images: 1, ..Size::default() };
        assert_eq!(priced_as("gpt-5.5").unwrap().counting.block(unknown), 1_600 + 4);
    }
}
