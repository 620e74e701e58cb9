//! Tokens of images by their size, as providers publish them.

use super::Provider;
use super::names::version;

/// A provider's rule for the tokens of an image: it is shrunk to `longest` pixels, a shorter side of
/// `shortest` and `most` squares of `side` pixels, and has `base` tokens and `each` for each square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageRule {
    side: f64,
    longest: f64,
    shortest: f64,
    most: f64,
    base: f64,
    each: f64,
}

impl ImageRule {
    /// Claude up to 4.6, by <https://platform.claude.com/docs/en/build-with-claude/vision>.
    pub(super) const CLAUDE: ImageRule =
        ImageRule { longest: 1_568.0, ..ImageRule::patches(28.0, 1_568.0, 1.0) };

    /// Claude since Opus 4.7, by the same page.
    pub(super) const CLAUDE_4_7: ImageRule =
        ImageRule { longest: 2_576.0, ..ImageRule::patches(28.0, 4_784.0, 1.0) };

    const fn patches(side: f64, most: f64, each: f64) -> ImageRule {
        let (longest, shortest, base) = (f64::INFINITY, f64::INFINITY, 0.0);
        ImageRule { side, longest, shortest, most, base, each }
    }

    const fn tiles(base: f64, each: f64) -> ImageRule {
        let tiles = ImageRule::patches(512.0, f64::INFINITY, each);
        ImageRule { longest: 2_048.0, shortest: 768.0, base, ..tiles }
    }

    /// Returns the rule of a model that is none of Anthropic's; `None` if nothing is published. OpenAI:
    /// <https://developers.openai.com/api/docs/guides/images-vision>, and since GPT-5.4 as measured in
    /// <https://huggingface.co/datasets/JOHNISKING/image-token-cost>. Gemini:
    /// <https://ai.google.dev/gemini-api/docs/tokens>, and since Gemini 3
    /// <https://ai.google.dev/gemini-api/docs/media-resolution>.
    pub(super) fn for_model(provider: Provider, name: &str) -> Option<ImageRule> {
        let has = |part: &str| name.contains(part);
        Some(match (provider, version(name).unwrap_or_default()) {
            (Provider::Openai, _) if has("o4-mini") => ImageRule::patches(32.0, 1_536.0, 1.72),
            (Provider::Openai, _) if has("nano") => ImageRule::patches(32.0, 1_536.0, 2.46),
            (Provider::Openai, _) if has("mini") => ImageRule::patches(32.0, 1_536.0, 1.62),
            (Provider::Openai, _) if has("o1") || has("o3") => ImageRule::tiles(75.0, 150.0),
            (Provider::Openai, 6_00..) => ImageRule::patches(32.0, f64::INFINITY, 1.2),
            (Provider::Openai, 5_04..) => ImageRule::patches(32.0, 10_000.0, 1.2),
            (Provider::Openai, 5_00..) => ImageRule::tiles(70.0, 140.0),
            (Provider::Openai, _) => ImageRule::tiles(85.0, 170.0),
            (Provider::Gemini, ..3_00) => ImageRule::patches(768.0, f64::INFINITY, 258.0),
            // Whatever its size.
            (Provider::Gemini, _) => ImageRule::tiles(1_120.0, 0.0),
            _ => return None,
        })
    }

    /// Returns the tokens of an image of this width and height in pixels.
    pub(super) fn tokens(self, (width, height): (u32, u32)) -> u64 {
        let (width, height) = (f64::from(width), f64::from(height));
        let squares = |scale: f64| self.count(width * scale) * self.count(height * scale);
        let longest = self.longest / width.max(height);
        let mut scale = longest.min(self.shortest / width.min(height)).min(1.0);
        if squares(scale) > self.most {
            scale = scale.min((self.most / (width * height)).sqrt() * self.side);
        }
        (self.base + self.each * squares(scale).min(self.most)).ceil() as u64
    }

    /// Returns the number of squares along a side. Rounding must not add one.
    fn count(self, pixels: f64) -> f64 {
        (pixels / self.side - 1e-6).ceil()
    }

    /// Multiplies the tokens of every image.
    pub(super) fn scaled(self, scale: f64) -> ImageRule {
        ImageRule { base: self.base * scale, each: self.each * scale, ..self }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::priced_as;
    use crate::tokens::Size;

    fn tokens(model: &str, width: u32, height: u32) -> u64 {
        let counting = priced_as(model).unwrap().counting;
        let pixels = Some((width, height));
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
        // 32 × 32 squares.
        assert_eq!(tokens("gpt-5-mini", 1_024, 1_024), 1_659);
        assert_eq!(tokens("o4-mini", 1_024, 1_024), 1_762);
        assert_eq!(tokens("o3", 1_024, 1_024), 675);
        // Shrunk to 1,568 pixels, 56 squares, though 2,070 × (1,568 ÷ 2,070) is a little more.
        assert_eq!(tokens("claude-sonnet-4-5", 2_070, 100), 56 * 3);
        assert_eq!(tokens("gemini-2.5-pro", 1_500, 700), 516);
        assert_eq!(tokens("gemini-3-flash-preview", 1_500, 700), 1_120);
        assert_eq!(tokens("deepseek-chat", 1_500, 700), 1_600);
        // Nobody knows the size of a link or the pages of a document.
        let unknown = Size { images: 1, ..Size::default() };
        assert_eq!(priced_as("gpt-5.5").unwrap().counting.block(unknown), 1_600 + 4);
    }
}
