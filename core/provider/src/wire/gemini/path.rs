//! Gemini's paths, which contain the model: `/v1beta/models/{model}:{method}`, and Vertex'
//! `/v1/projects/{p}/locations/{l}/publishers/google/models/{model}:{method}`.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Generate,
    /// Generates a reply as events.
    Stream,
    /// Counts the tokens of a request.
    Count,
}

const METHODS: [(Method, &str); 3] = [
    (Method::Generate, "generateContent"),
    (Method::Stream, "streamGenerateContent"),
    (Method::Count, "countTokens"),
];

pub(super) const MODELS: &str = "/v1beta/models";

/// Characters to escape in a model's name.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

pub(super) fn method_path(model: &str, method: Method) -> String {
    let word = METHODS.iter().find(|(m, _)| *m == method).map_or("", |(_, w)| *w);
    format!("{MODELS}/{}:{word}", utf8_percent_encode(model, ESCAPED))
}

/// Returns model and method of a path; `None` for other paths.
pub(super) fn read(path: &str) -> Option<(Cow<'_, str>, Method)> {
    let (front, word) = path.rsplit_once(':')?;
    let (before, model) = front.rsplit_once("/models/")?;
    let (method, _) = METHODS.iter().find(|(_, w)| *w == word)?;
    let versioned = before.starts_with("/v1") && !model.is_empty() && !model.contains('/');
    let model = percent_decode_str(model).decode_utf8().ok()?;
    versioned.then_some((model, *method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_stands_in_the_path() {
        for (path, model, method) in [
            ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", Method::Generate),
            ("/v1/models/g:streamGenerateContent", "g", Method::Stream),
            (
                "/v1beta1/projects/p/locations/global/publishers/google/models/g@001:countTokens",
                "g@001",
                Method::Count,
            ),
            ("/v1beta/models/a%2Fb%3Ac:countTokens", "a/b:c", Method::Count),
        ] {
            assert_eq!(read(path), Some((model.into(), method)), "{path}");
        }
        for none in [
            "",
            "/v1beta/models",
            "/v1beta/models/g",
            "/v1beta/models/:generateContent",
            "/v1beta/models/g:embedContent",
            "/models/g:generateContent",
            "/v1beta/models/a/b:generateContent",
            "/v1/chat/completions",
        ] {
            assert_eq!(read(none), None, "{none}");
        }
        for model in ["gemini-2.5-pro", "org/model:free", "ä b%"] {
            assert_eq!(
                read(&method_path(model, Method::Stream)),
                Some((model.into(), Method::Stream))
            );
        }
    }
}
