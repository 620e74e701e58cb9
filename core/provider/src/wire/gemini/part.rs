//! Gemini: content parts.
//!
//! The provider puts the signature of a thought on the next part, a call or text. So the encoder writes
//! a thought as a separate part and its signature on the next one, or on the thought itself if there is
//! none. A thought without readable text becomes the signature alone.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ctxbench_core::block::Media;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor, value};
use serde_json::value::RawValue;

use super::calls::OpenCalls;
use crate::prompt::Content;
use crate::wire::WireError;
use crate::wire::json::{Text, field, opt, or_empty, raw, unwrapped};
use crate::wire::plan::{PDF, data_url};

/// Placeholder signatures of clients for calls without one, without a thought
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
const NO_THOUGHT: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// The kind of a part with respect to signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// A thought.
    Thought {
        /// Whether the thought has no readable text.
        empty: bool,
        /// Whether the thought has a signature.
        sealed: bool,
    },
    /// May carry the signature of the thought before it.
    Carrier,
    /// May not carry a signature.
    Other,
}

/// The encoding of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartForm {
    /// Omitted: the next part carries the signature.
    Left,
    /// Without a signature.
    Bare,
    /// With the signature of the part at this index: its own or that of the thought before it.
    Signed(usize),
}

/// Returns the encodings of the parts of one content.
pub(super) fn forms(parts: &[PartKind]) -> Vec<PartForm> {
    let sealed = |i: usize| matches!(parts.get(i), Some(PartKind::Thought { sealed: true, .. }));
    let open = |i: usize| matches!(parts.get(i), Some(PartKind::Thought { sealed: false, .. }));
    let form = |(i, kind): (usize, &PartKind)| match kind {
        PartKind::Carrier if i > 0 && sealed(i - 1) => PartForm::Signed(i - 1),
        PartKind::Thought { sealed: true, empty }
            if parts.get(i + 1) == Some(&PartKind::Carrier) =>
        {
            // If omitted, its signature would apply to an unsigned thought before it.
            if *empty && !(i > 0 && open(i - 1)) { PartForm::Left } else { PartForm::Bare }
        }
        PartKind::Thought { sealed: true, .. } => PartForm::Signed(i),
        _ => PartForm::Bare,
    };
    parts.iter().enumerate().map(form).collect()
}

/// Begins a thought; its text follows.
pub(super) const THOUGHT: &str = "{\"thought\":true,\"text\":";
/// Start of an encoded text part.
pub(super) const TEXT: &str = "{\"text\":";

/// Writes a call without the closing brace of its part.
pub(super) fn call(o: &mut Vec<u8>, id: &str, name: &str, arguments: impl FnOnce(&mut Vec<u8>)) {
    raw(o, "{\"functionCall\":{");
    if !id.is_empty() {
        field(o, "\"id\":", id);
        o.push(b',');
    }
    field(o, "\"name\":", name);
    raw(o, ",\"args\":");
    arguments(o);
    o.push(b'}');
}

/// Ends a part, with its signature if any.
pub(super) fn close(o: &mut Vec<u8>, signature: Option<&str>) {
    if let Some(s) = signature {
        field(o, ",\"thoughtSignature\":", s);
    }
    o.push(b'}');
}

/// Writes a file without the closing brace of its part.
pub(super) fn file(o: &mut Vec<u8>, m: &Media) {
    match data_url(&m.url) {
        Some((media_type, data)) => {
            field(o, "{\"inlineData\":{\"mimeType\":", media_type);
            field(o, ",\"data\":", data);
        }
        None => {
            raw(o, "{\"fileData\":{");
            if m.media_type == PDF {
                field(o, "\"mimeType\":", PDF);
                o.push(b',');
            }
            field(o, "\"fileUri\":", &m.url);
        }
    }
    o.push(b'}');
}

/// A part; exactly one of its kinds is set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiPart<'a> {
    text: Option<Text>,
    #[serde(default)]
    thought: bool,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<Text>,
    #[serde(borrow, alias = "function_call")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, alias = "function_response")]
    function_response: Option<Response<'a>>,
    #[serde(alias = "inline_data")]
    inline_data: Option<Blob>,
    #[serde(alias = "file_data")]
    file_data: Option<FileData>,
    #[serde(alias = "executable_code")]
    executable_code: Option<IgnoredAny>,
    #[serde(alias = "code_execution_result")]
    code_execution_result: Option<IgnoredAny>,
    #[serde(alias = "tool_call")]
    tool_call: Option<IgnoredAny>,
    #[serde(alias = "tool_response")]
    tool_response: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    id: Option<Text>,
    name: Option<Text>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: Option<Text>,
    name: Option<Text>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(default)]
    parts: Vec<ResponsePart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponsePart {
    #[serde(alias = "inline_data")]
    inline_data: Option<Blob>,
    #[serde(alias = "file_data")]
    file_data: Option<FileData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blob {
    #[serde(alias = "mime_type")]
    mime_type: Option<Text>,
    data: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileData {
    #[serde(alias = "mime_type")]
    mime_type: Option<Text>,
    #[serde(alias = "file_uri")]
    file_uri: Text,
}

impl Blob {
    fn media(self) -> Media {
        let media_type = or_empty(self.mime_type).to_string();
        let url = format!("data:{media_type};base64,{}", or_empty(self.data));
        Media { media_type, url, name: None }
    }
}

impl FileData {
    fn media(self) -> Media {
        let media_type = self.mime_type.filter(|t| *t.0 == *PDF).map_or("", |_| PDF).into();
        Media { media_type, url: self.file_uri.0.to_string(), name: None }
    }
}

impl ResponsePart {
    fn media(self) -> Option<Media> {
        self.inline_data.map(Blob::media).or(self.file_data.map(FileData::media))
    }
}

/// Returns the result of a tool: `output` or `error` if the object has no other field, else the whole
/// object.
fn returned(response: Option<&RawValue>) -> (Arc<str>, bool) {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Plain {
        output: Option<Text>,
        error: Option<Text>,
    }
    #[derive(Deserialize)]
    struct Failed {
        output: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    let Some(given) = response.map(RawValue::get) else { return ("".into(), false) };
    match serde_json::from_str(given) {
        Ok(Plain { output: Some(t), error: None }) => (t.0, false),
        Ok(Plain { output: None, error: Some(t) }) => (t.0, true),
        _ => {
            let failed = serde_json::from_str::<Failed>(given)
                .is_ok_and(|f| f.error.is_some() && f.output.is_none());
            (given.into(), failed)
        }
    }
}

impl GeminiPart<'_> {
    /// Adds the part to its content.
    pub(super) fn read(
        self,
        found: &mut Vec<Content>,
        calls: &mut OpenCalls,
    ) -> Result<(), WireError> {
        let missing = |field| WireError::Missing { field, in_what: "part" };
        let unsupported = self.unsupported();
        let signature = opt(self.thought_signature).filter(|s| !NO_THOUGHT.contains(&&**s));
        if self.thought {
            let text = or_empty(self.text);
            found.push(Content::Reasoning { text, encrypted: signature });
            return Ok(());
        }
        if signature.is_some() {
            match found.last_mut() {
                Some(Content::Reasoning { encrypted: sealed @ None, .. }) => *sealed = signature,
                _ => found.push(Content::Reasoning { text: "".into(), encrypted: signature }),
            }
        }
        let image =
            |m: Media| Content::Image { media_type: m.media_type.into(), url: m.url.into() };
        let content = if let Some(c) = self.function_call {
            let name = c.name.ok_or(missing("functionCall.name"))?.0;
            let id = calls.call(opt(c.id), &name);
            Content::Call { id, name, arguments: unwrapped(c.args) }
        } else if let Some(r) = self.function_response {
            let id = calls.result(opt(r.id), &or_empty(r.name));
            let (text, is_error) = returned(r.response);
            let image = r.parts.into_iter().find_map(ResponsePart::media).map(Box::new);
            Content::Output { id, text, is_error, image }
        } else if let Some(blob) = self.inline_data {
            image(blob.media())
        } else if let Some(file) = self.file_data {
            image(file.media())
        } else if let Some(text) = self.text {
            Content::Text(text.0)
        } else {
            return match unsupported {
                Some(value) => Err(WireError::Unsupported {
                    what: "part",
                    value: value.into(),
                    known: "text, functionCall, functionResponse, inlineData, fileData",
                }),
                // A signature may be on an empty part.
                None => Ok(()),
            };
        };
        found.push(content);
        Ok(())
    }

    fn unsupported(&self) -> Option<&'static str> {
        let kinds = [
            ("executableCode", self.executable_code.is_some()),
            ("codeExecutionResult", self.code_execution_result.is_some()),
            ("toolCall", self.tool_call.is_some()),
            ("toolResponse", self.tool_response.is_some()),
        ];
        kinds.iter().find(|(_, there)| *there).map(|(name, _)| *name)
    }
}

/// The parts of a content: a list or a single part.
#[derive(Default)]
pub(super) struct Parts<'a>(pub(super) Vec<GeminiPart<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Parts<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct PartsVisitor<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for PartsVisitor<'a> {
            type Value = Parts<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a part or a list of parts")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Parts<'a>, A::Error> {
                GeminiPart::deserialize(value::MapAccessDeserializer::new(map))
                    .map(|p| Parts(vec![p]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Parts<'a>, A::Error> {
                let mut parts = Vec::new();
                while let Some(p) = seq.next_element()? {
                    parts.push(p);
                }
                Ok(Parts(parts))
            }
        }
        d.deserialize_any(PartsVisitor(std::marker::PhantomData))
    }
}

/// The content of one role in a turn.
#[derive(Deserialize)]
pub(super) struct GeminiTurn<'a> {
    #[serde(borrow)]
    pub(super) role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parts: Parts<'a>,
}

impl GeminiTurn<'_> {
    pub(super) fn contents(self, calls: &mut OpenCalls) -> Result<Vec<Content>, WireError> {
        let mut found = Vec::with_capacity(self.parts.0.len());
        for part in self.parts.0 {
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
        let thought = |empty, sealed| PartKind::Thought { empty, sealed };
        let of = |kinds: &[PartKind]| forms(kinds);
        use PartForm::{Bare, Left, Signed};
        use PartKind::{Carrier, Other};
        assert_eq!(of(&[thought(false, true), Carrier, Carrier]), [Bare, Signed(0), Bare]);
        assert_eq!(of(&[thought(true, true), Carrier]), [Left, Signed(0)]);
        assert_eq!(of(&[thought(false, false), Carrier]), [Bare, Bare]);
        assert_eq!(of(&[thought(false, true)]), [Signed(0)]);
        assert_eq!(of(&[thought(true, true), Other]), [Signed(0), Bare]);
        // If omitted, the second would sign the first.
        let two = [thought(false, false), thought(true, true), Carrier];
        assert_eq!(of(&two), [Bare, Bare, Signed(1)]);
    }
}
