//! Gemini: content parts.
//!
//! The provider puts the signature of a thought on the next part, a call or text. So the encoder writes
//! a thought as a separate part and its signature on the next one, or on the thought itself if there is
//! none. A thought without readable text becomes the signature alone.

use std::borrow::Cow;

use ctxbench_core::prelude::*;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::calls::OpenCalls;
use crate::prompt::plain;
use crate::wire::format::WireError;
use crate::wire::json::{Text, opt, or_empty, unwrapped};
use crate::wire::slot::{PDF, data_url};
use crate::wire::stream::pieces;

/// Placeholder signatures of clients for calls without one, without a thought
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
const NO_THOUGHT: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// A part; exactly one of its kinds is set.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiPart<'a> {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(borrow, alias = "function_call", skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, alias = "function_response", skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(alias = "inline_data", skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob<'a>>,
    #[serde(alias = "file_data", skip_serializing_if = "Option::is_none")]
    file_data: Option<FileData<'a>>,
    #[serde(alias = "thought_signature", skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    args: Option<Cow<'a, RawValue>>,
}

#[derive(Deserialize, Serialize)]
struct FunctionResponse<'a> {
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    #[serde(default, deserialize_with = "returned")]
    response: Returned<'a>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<GeminiPart<'a>>,
}

/// The result of a tool: the field `output` or `error` of an object, or a whole object with other
/// fields.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Returned<'a> {
    Output(Text<'a>),
    Error(Text<'a>),
}

impl Default for Returned<'_> {
    fn default() -> Self {
        Returned::Output("".into())
    }
}

fn returned<'de, 'a, D: Deserializer<'de>>(d: D) -> Result<Returned<'a>, D::Error> {
    #[derive(Deserialize)]
    struct Fields {
        output: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    let Some(raw) = <Option<&RawValue>>::deserialize(d)? else { return Ok(Returned::default()) };
    if let Ok(one) = serde_json::from_str(raw.get()) {
        return Ok(one);
    }
    let whole = Text::Shared(raw.get().into());
    Ok(match serde_json::from_str(raw.get()) {
        Ok(Fields { output: None, error: Some(_) }) => Returned::Error(whole),
        _ => Returned::Output(whole),
    })
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    #[serde(alias = "mime_type")]
    mime_type: Option<Text<'a>>,
    data: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    #[serde(alias = "mime_type", skip_serializing_if = "Option::is_none")]
    mime_type: Option<Text<'a>>,
    #[serde(alias = "file_uri")]
    file_uri: Text<'a>,
}

impl<'a> GeminiPart<'a> {
    pub(super) fn text(text: Text<'a>) -> Self {
        GeminiPart { text: Some(text), ..GeminiPart::default() }
    }

    pub(super) fn thought(text: Text<'a>, signature: Option<&'a Arc<str>>) -> Self {
        let signature = signature.filter(|s| !s.is_empty()).map(|s| Text::Plain(s));
        GeminiPart { thought: true, thought_signature: signature, ..GeminiPart::text(text) }
    }

    pub(super) fn call(id: &'a str, name: &'a str, args: Cow<'a, RawValue>) -> Self {
        let id = Some(id).filter(|id| !id.is_empty()).map(Text::Plain);
        let call = FunctionCall { id, name: Some(name.into()), args: Some(args) };
        GeminiPart { function_call: Some(call), ..GeminiPart::default() }
    }

    pub(super) fn result(
        id: &'a str,
        name: &'a str,
        response: Returned<'a>,
        file: Option<&'a Media>,
    ) -> Self {
        let parts = file.map(GeminiPart::file).into_iter().collect();
        let (id, name) = (Some(id.into()), Some(name.into()));
        let response = FunctionResponse { id, name, response, parts };
        GeminiPart { function_response: Some(response), ..GeminiPart::default() }
    }

    pub(super) fn file(m: &'a Media) -> Self {
        match data_url(&m.url) {
            Some((media_type, data)) => {
                let (mime_type, data) = (Some(media_type.into()), Some(data.into()));
                GeminiPart { inline_data: Some(Blob { mime_type, data }), ..GeminiPart::default() }
            }
            None => {
                let mime_type = (m.media_type == PDF).then(|| PDF.into());
                let file = FileData { mime_type, file_uri: (&*m.url).into() };
                GeminiPart { file_data: Some(file), ..GeminiPart::default() }
            }
        }
    }

    /// Splits a text into pieces, of which the last has the signature. Another part stays whole.
    pub(super) fn cut(self) -> Vec<GeminiPart<'a>> {
        let Some(text) = &self.text else { return vec![self] };
        let piece = |text: &str| {
            let text = GeminiPart::text(Text::Shared(text.into()));
            GeminiPart { thought: self.thought, ..text }
        };
        let mut cut: Vec<_> = pieces(text.as_str()).into_iter().map(piece).collect();
        match cut.last_mut() {
            Some(last) => last.thought_signature = self.thought_signature,
            None => cut.push(self),
        }
        cut
    }

    /// Appends the part, or its text to a text of the same kind that no signature ends yet.
    pub(super) fn add_to(self, parts: &mut Vec<GeminiPart<'a>>) {
        if let Some(begun) = parts.last_mut()
            && begun.thought == self.thought
            && begun.thought_signature.is_none()
            && let (Some(text), Some(more)) = (&begun.text, &self.text)
        {
            begun.text = Some(Text::Shared(format!("{}{}", text.as_str(), more.as_str()).into()));
            begun.thought_signature = self.thought_signature;
        } else {
            parts.push(self);
        }
    }

    fn take_file(&mut self) -> Option<Media> {
        if let Some(Blob { mime_type, data }) = self.inline_data.take() {
            let media_type = or_empty(mime_type).to_string();
            let url = format!("data:{media_type};base64,{}", or_empty(data));
            return Some(Media { media_type, url, name: None });
        }
        let FileData { mime_type, file_uri } = self.file_data.take()?;
        let media_type = opt(mime_type).filter(|t| **t == *PDF).map_or("", |_| PDF).into();
        Some(Media { media_type, url: file_uri.into_shared().to_string(), name: None })
    }

    fn read(mut self, found: &mut Vec<Draft>, calls: &mut OpenCalls) -> Result<(), WireError> {
        let missing = |field| WireError::Missing { field, in_what: "part" };
        let signature = opt(self.thought_signature.take()).filter(|s| !NO_THOUGHT.contains(&&**s));
        if self.thought {
            found.push(Draft::reasoning(or_empty(self.text), signature));
            return Ok(());
        }
        let is_signed = signature.is_some();
        if is_signed {
            match found.last_mut() {
                Some(last) if last.kind == BlockKind::Reasoning && last.opaque.is_none() => {
                    last.opaque = signature;
                }
                _ => found.push(Draft::reasoning("", signature)),
            }
        }
        found.push(if let Some(c) = self.function_call.take() {
            let name = c.name.ok_or(missing("functionCall.name"))?.into_shared();
            let id = calls.call(opt(c.id), &name);
            Draft::call(id, name, unwrapped(c.args.as_deref()))
        } else if let Some(mut r) = self.function_response.take() {
            let id = calls.result(opt(r.id), &or_empty(r.name));
            let (text, is_error) = match r.response {
                Returned::Output(text) => (text, false),
                Returned::Error(text) => (text, true),
            };
            let media = r.parts.iter_mut().find_map(GeminiPart::take_file).map(Arc::new);
            Draft { media, ..Draft::output(id, "".into(), text.into_shared(), is_error) }
        } else if let Some(m) = self.take_file() {
            Draft::image(m)
        } else if let Some(text) = self.text {
            plain(text.into_shared())
        } else {
            // A signature may be on an empty part.
            let known = "text, functionCall, functionResponse, inlineData or fileData";
            return if is_signed { Ok(()) } else { Err(missing(known)) };
        });
        Ok(())
    }
}

/// The parts of a content: a list or a single part.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub(super) struct Parts<'a>(pub(super) Vec<GeminiPart<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Parts<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(d)?.get();
        let parts = match raw.starts_with('{') {
            true => serde_json::from_str(raw).map(|part| vec![part]),
            false => serde_json::from_str(raw),
        };
        parts.map(Parts).map_err(D::Error::custom)
    }
}

impl<'a> Parts<'a> {
    /// Moves the signature of each thought to the part after it, which may not be a thought.
    pub(super) fn signed(parts: impl Iterator<Item = GeminiPart<'a>>) -> Self {
        let mut signed: Vec<GeminiPart<'a>> = Vec::new();
        for mut part in parts {
            if let [before @ .., last] = &mut signed[..]
                && !part.thought
                && last.thought
                && last.thought_signature.is_some()
            {
                part.thought_signature = last.thought_signature.take();
                // If omitted, its signature would apply to an unsigned thought before it.
                let unsigned =
                    before.last().is_some_and(|b| b.thought && b.thought_signature.is_none());
                if last.text.as_ref().is_none_or(|t| t.as_str().is_empty()) && !unsigned {
                    signed.pop();
                }
            }
            signed.push(part);
        }
        Parts(signed)
    }

    pub(super) fn contents(self, calls: &mut OpenCalls) -> Result<Vec<Draft>, WireError> {
        let mut found = Vec::with_capacity(self.0.len());
        for part in self.0 {
            part.read(&mut found, calls)?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_stands_behind_its_thought() {
        let signature: Arc<str> = "s".into();
        let thought = |text, sealed: bool| {
            GeminiPart::thought(Text::Plain(text), sealed.then_some(&signature))
        };
        let text = || GeminiPart::text("t".into());
        // Thoughts are `h`, texts `t`; a signature follows as `s`.
        let of = |parts: Vec<GeminiPart<'_>>| -> String {
            let shown = |p: &GeminiPart<'_>| {
                let kind = if p.thought { "h" } else { "t" };
                [kind, if p.thought_signature.is_some() { "s" } else { "" }].concat()
            };
            Parts::signed(parts.into_iter()).0.iter().map(shown).collect()
        };
        assert_eq!(of(vec![thought("h", true), text(), text()]), "htst");
        assert_eq!(of(vec![thought("", true), text()]), "ts");
        assert_eq!(of(vec![thought("", false), text()]), "ht");
        assert_eq!(of(vec![thought("", true)]), "hs");
        // If omitted, the second would sign the first.
        assert_eq!(of(vec![thought("", false), thought("", true), text()]), "hhts");
    }
}
